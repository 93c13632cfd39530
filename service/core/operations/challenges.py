"""Verification of receivers: they must return a signed challenge before anything is sent to them."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from sayso.core.canonical_json import parse_json
from sayso.core.clock import iso_utc, new_secret, new_uuid
from sayso.errors import SaysoError, TooManyRequests
from service.core.concurrency import Slots
from service.core.outgoing.connections import host_and_port
from service.core.store.attempts import Allowance
from service.core.wiring import Wiring

PER_HOST = Allowance("aap-verifications", 10, 60)
_CONCURRENCY = Slots(2)


@dataclass(frozen=True)
class Challenge:
    """A receiver to verify: its URL, the secrets that sign, who asks for it, and further members of the message."""

    url: str
    secrets: tuple[str, ...]
    allowance: tuple[Allowance, str]
    members: Mapping[str, str] = field(default_factory=dict)


async def challenge_receiver(parts: Wiring, asked: Challenge) -> str:
    """Send a signed challenge; return why it failed, or an empty text. Raises `TooManyRequests`, `UnsafeUrl`."""
    parts.posts.check_url(asked.url)
    place = host_and_port(asked.url)
    await parts.attempts.count(*asked.allowance)
    await parts.attempts.count(PER_HOST, place)
    with _CONCURRENCY.take((f"scope {asked.allowance[1]}", f"place {place}")) as free:
        if not free:
            raise TooManyRequests("Other registrations are being verified. Try again in a second.", retry_after_s=1)
        message_id, challenge = new_uuid(), new_secret()
        message = {
            "id": message_id,
            "type": "webhook.verification",
            **asked.members,
            "created_at": iso_utc(await parts.schedule.now_ms()),
            "challenge": challenge,
        }
        answer = await parts.posts.post(asked.url, asked.secrets, message_id, json.dumps(message).encode())
        if answer.status == 200:
            with suppress(SaysoError):
                if parse_json(answer.body) == {"challenge": challenge}:
                    return ""
        return answer.error or f"it answered {answer.status} instead of 200 with the challenge"
