"""Verify receivers before they are stored."""

from service.api.aap.problems import Refusal
from service.delivery.addresses import UnsafeUrl
from service.operations.verifications import Challenge, challenge_receiver
from service.store.attempts import Allowance
from service.store.instances import Registration
from service.wiring import Wiring

PER_PROVISIONER = Allowance("aap-registrations", 30, 60)


async def verify_receiver(parts: Wiring, scope: str, instance_id: str, delivery: Registration) -> None:
    """Send a signed challenge, which the receiver must return; raises `TooManyRequests` or `Refusal`."""
    members = {"registration_id": delivery.registration_id, "instance_id": instance_id}
    challenge = Challenge(delivery.url, (delivery.signing_secret,), (PER_PROVISIONER, scope), members)
    try:
        failure = await challenge_receiver(parts, challenge)
    except UnsafeUrl as error:
        raise Refusal(400, "invalid_webhook_url", error.message) from None
    if failure:
        raise Refusal(
            422, "webhook_verification_failed", f"The receiver failed its verification: {failure}.", "delivery.url"
        )
