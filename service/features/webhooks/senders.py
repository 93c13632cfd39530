"""Senders of signed decisions, managed by admins: each has secrets, and one reviewer in whose name it decides."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sayso.core.clock import new_id
from sayso.core.signing import new_signing_secret
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound
from service.core.auth.credentials import Principal
from service.core.auth.reviewers import require_role
from service.core.wiring import Wiring
from service.features.webhooks.store import Sender, Senders, TimedSecret, list_valid, rotate

MOST_SENDERS = 200

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class NewSender(NamedTuple):
    """A sender, and the only copy of its new secret."""

    sender: Sender
    secret: str


async def register_sender(parts: Wiring, caller: Principal, name: str, reviewer: str) -> NewSender:
    """Save a sender that decides in the name of an active reviewer."""
    require_role(caller.roles, "admin")
    if not _NAME.fullmatch(name):
        raise InvalidInput("A sender's name has up to 64 of a-z, 0-9, '.', '_' and '-'. Choose another name.")
    person = await parts.reviewers.find(reviewer)
    if person is None or not person.active:
        raise NotFound(f"There is no active reviewer named {reviewer[:64]!r}. Add the reviewer first.")
    known = [sender for sender in await parts.part(Senders).list_all() if sender.revoked_at_ms is None]
    if any(sender.name == name for sender in known):
        raise Conflict(f"A sender is named {name}. Rotate its secret, or choose another name.")
    if len(known) >= MOST_SENDERS:
        raise Conflict(f"There are {len(known)} senders, which is the limit. Revoke one first.")
    secret = new_signing_secret()
    sender = Sender(
        id=new_id("whs"),
        name=name,
        reviewer=person.name,
        created_by=caller.name,
        created_at_ms=await parts.schedule.now_ms(),
        secrets=(TimedSecret(secret=secret),),
    )
    await parts.part(Senders).add(sender)
    return NewSender(sender, secret)


async def list_senders(parts: Wiring, caller: Principal) -> Sequence[Sender]:
    """Return all senders, including revoked ones."""
    require_role(caller.roles, "admin")
    return await parts.part(Senders).list_all()


async def rotate_sender(parts: Wiring, caller: Principal, sender_id: str, overlap_s: int) -> NewSender:
    """Give a sender a new secret. The old ones are accepted until the overlap ends."""
    require_role(caller.roles, "admin")
    secret, now_ms = new_signing_secret(), await parts.schedule.now_ms()

    def change(sender: Sender) -> Sender:
        if sender.revoked_at_ms is not None:
            raise Conflict(f"The sender {sender.name} is revoked. Register a new one.")
        return sender.model_copy(update={"secrets": rotate(sender.secrets, secret, now_ms, overlap_s)})

    changed = await parts.part(Senders).change(sender_id, change)
    if changed is None:
        raise _unknown(sender_id)
    return NewSender(changed, secret)


async def revoke_sender(parts: Wiring, caller: Principal, sender_id: str) -> Sender:
    """Refuse everything from a sender at once, for good."""
    require_role(caller.roles, "admin")
    now_ms = await parts.schedule.now_ms()

    def change(sender: Sender) -> Sender:
        at_ms = sender.revoked_at_ms or now_ms
        return sender.model_copy(update={"revoked_at_ms": at_ms, "secrets": ()})

    changed = await parts.part(Senders).change(sender_id, change)
    if changed is None:
        raise _unknown(sender_id)
    return changed


async def find_secrets(parts: Wiring, sender: Sender | None) -> list[str]:
    """Return the valid secrets of a sender; none of an unknown or revoked one."""
    if sender is None or sender.revoked_at_ms is not None:
        return []
    return list_valid(sender.secrets, await parts.schedule.now_ms())


async def find_reviewer(parts: Wiring, sender: Sender, named: str | None) -> str:
    """Return the reviewer of a sender; raises `NotAllowed` for another name or an inactive reviewer."""
    if named is not None and named != sender.reviewer:
        raise NotAllowed(f"The sender {sender.name} decides as {sender.reviewer}. Omit `reviewer`, or send that name.")
    person = await parts.reviewers.find(sender.reviewer)
    if person is None or not person.active:
        raise NotAllowed(f"The reviewer {sender.reviewer} is not active. Ask an admin to register another sender.")
    return person.name


def _unknown(sender_id: str) -> NotFound:
    return NotFound(f"There is no sender {sender_id[:100]!r}. `sayso webhooks senders list` has the ids.")
