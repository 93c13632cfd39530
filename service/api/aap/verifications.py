"""Verify receivers before they are stored."""

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

PER_PROVISIONER = Allowance("aap-registrations", 30, 60)
PER_HOST = Allowance("aap-verifications", 10, 60)
_CONCURRENCY = Slots(2)


async def verify_receiver(parts: Wiring, scope: str, instance_id: str, delivery: Registration) -> None:
    """Send a signed challenge, which the receiver must return; raises `TooManyRequests` or `Refusal`."""
    try:
        check_url(delivery.url, loopback=parts.settings.aap_allow_loopback)
        place = host_and_port(delivery.url)
        await parts.attempts.count(PER_PROVISIONER, scope)
        await parts.attempts.count(PER_HOST, place)
        with _CONCURRENCY.take((f"scope {scope}", f"place {place}")) as free:
            if not free:
                raise TooManyRequests("Other registrations are being verified. Try again in a second.", retry_after_s=1)
            await _challenge(parts, instance_id, delivery)
    except UnsafeUrl as error:
        raise Refusal(400, "invalid_webhook_url", error.message) from None


async def _challenge(parts: Wiring, instance_id: str, delivery: Registration) -> None:
    message_id, challenge = new_uuid(), new_secret()
    message = {
        "id": message_id,
        "type": "webhook.verification",
        "registration_id": delivery.registration_id,
        "instance_id": instance_id,
        "created_at": iso_utc(await parts.schedule.now_ms()),
        "challenge": challenge,
    }
    answer = await parts.posts.post(delivery.url, delivery.signing_secret, message_id, json.dumps(message).encode())
    if not _passes(answer, challenge):
        reason = answer.error or f"it answered {answer.status} instead of 200 with the challenge"
        raise Refusal(
            422, "webhook_verification_failed", f"The receiver failed its verification: {reason}.", "delivery.url"
        )


def _passes(answer: Answer, challenge: str) -> bool:
    if answer.status != 200:
        return False
    try:
        return parse_json(answer.body) == {"challenge": challenge}
    except SaysoError:
        return False
