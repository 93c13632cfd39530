"""Where the messages of a lane go: to an instance of the Agent Approval Protocol, or to a webhook endpoint."""

from dataclasses import dataclass

from service.core.outgoing.breakers import (
    EVENTS_RETRY_FOR_MS,
    LONGEST_ASKED_MS,
    LONGEST_RETRY_MS,
    event_retry_after_ms,
    retry_after_ms,
)
from service.core.outgoing.connections import host_and_port
from service.core.store.attempts import Allowance
from service.core.store.instances import Instances
from service.core.wiring import Wiring
from service.features.webhooks.announcements import RETRY_FOR_MS, Delivery
from service.features.webhooks.store import ENDPOINT_PREFIX, Endpoints, list_valid

BY_INSTANCE = Allowance("aap-messages-by", 600, 60)
TO_PLACE = Allowance("aap-messages-to", 600, 60)
GONE = 410


@dataclass(frozen=True)
class Target:
    """The receiver of a lane's messages. With a `refusal` nothing is sent, and the messages fail with that reason."""

    endpoint_id: str
    url: str
    secrets: tuple[str, ...]
    refusal: str = ""
    limits: tuple[tuple[Allowance, str], ...] = ()

    @property
    def is_endpoint(self) -> bool:
        """Whether it is a webhook endpoint."""
        return self.endpoint_id.startswith(ENDPOINT_PREFIX)

    @property
    def places(self) -> tuple[str, ...]:
        """What attempts at several instances share, so that provisioners cannot flood a host."""
        return () if self.is_endpoint else (host_and_port(self.url),)

    @property
    def retry_for_ms(self) -> int:
        """How long a message is sent after its event."""
        return EVENTS_RETRY_FOR_MS if self.is_endpoint else RETRY_FOR_MS

    def find_next_ms(self, message: Delivery, requested_ms: int, now_ms: int) -> int | None:
        """Return when to send a refused message again, as its receiver requests or later; None after the last try."""
        if self.is_endpoint:
            wait_ms = event_retry_after_ms(message.id, message.tries)
            return None if wait_ms is None else now_ms + max(wait_ms, min(requested_ms, LONGEST_ASKED_MS))
        wait_ms = max(retry_after_ms(message.id, message.tries), requested_ms)
        # After a clock jump, until_ms may have passed.
        return min(now_ms + wait_ms, max(message.until_ms, now_ms + LONGEST_RETRY_MS))


async def find_target(wiring: Wiring, endpoint_id: str, now_ms: int) -> Target | None:
    """Return the receiver of a lane, or None if it was deleted or wants no messages."""
    if not endpoint_id.startswith(ENDPOINT_PREFIX):
        instance = await wiring.part(Instances).read(endpoint_id)
        if instance is None or instance.delivery is None:
            return None
        url = instance.delivery.url
        limits = ((BY_INSTANCE, instance.id), (TO_PLACE, host_and_port(url)))
        return Target(instance.id, url, (instance.delivery.signing_secret,), limits=limits)
    endpoint = await wiring.part(Endpoints).find(endpoint_id)
    if endpoint is None:
        return None
    refusal = "" if endpoint.state == "active" else f"The endpoint is {endpoint.state}. {endpoint.reason}".strip()
    return Target(endpoint.id, endpoint.url, tuple(list_valid(endpoint.secrets, now_ms)), refusal)
