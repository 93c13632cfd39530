"""See to it that a receiver wants to be told, before anything of it is kept."""

import json

from sayso.canonical_json import parse_json
from sayso.clock import iso_utc, new_secret, new_uuid
from sayso.errors import SaysoError, TooManyRequests
from service.api.aap.problems import Refusal
from service.concurrency import Slots
from service.delivery.addresses import UnsafeUrl, check_url, host_and_port
from service.delivery.http import Answer
from service.store.attempts import Allowance
from service.store.instances import Registration
from service.wiring import Wiring

BY_SCOPE = Allowance("aap-registrations", 30, 60)
TO_PLACE = Allowance("aap-verifications", 10, 60)
_AT_ONCE = Slots(2)


async def verify_receiver(parts: Wiring, scope: str, instance_id: str, told: Registration) -> None:
    """Send one signed challenge to the receiver and return when it came back.

    Raises `TooManyRequests`, and `Refusal` for an unsafe address or a failed verification.
    """
    try:
        check_url(told.url, loopback=parts.settings.aap_allow_loopback)
        await _verify(parts, scope, instance_id, told)
    except UnsafeUrl as error:
        raise Refusal(400, "invalid_webhook_url", error.message) from None


async def _verify(parts: Wiring, scope: str, instance_id: str, told: Registration) -> None:
    place = host_and_port(told.url)
    await parts.attempts.count(BY_SCOPE, scope)
    await parts.attempts.count(TO_PLACE, place)
    with _AT_ONCE.take((f"scope {scope}", f"place {place}")) as free:
        if not free:
            raise TooManyRequests("Other registrations are being verified; try again in a second.", retry_after_s=1)
        await _challenge(parts, instance_id, told)


async def _challenge(parts: Wiring, instance_id: str, told: Registration) -> None:
    message_id, challenge = new_uuid(), new_secret()
    message = {
        "id": message_id,
        "type": "webhook.verification",
        "registration_id": told.registration_id,
        "instance_id": instance_id,
        "created_at": iso_utc(await parts.schedule.now_ms()),
        "challenge": challenge,
    }
    answer = await parts.posts.post(told.url, told.signing_secret, message_id, json.dumps(message).encode())
    if not _passes(answer, challenge):
        why = answer.error or f"it answered {answer.status} and not 200 with the challenge"
        raise Refusal(
            422, "webhook_verification_failed", f"The receiver did not pass its verification: {why}.", "delivery.url"
        )


def _passes(answer: Answer, challenge: str) -> bool:
    if answer.status != 200:
        return False
    try:
        return parse_json(answer.body) == {"challenge": challenge}
    except SaysoError:
        return False
