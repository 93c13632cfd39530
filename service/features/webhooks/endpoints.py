"""Webhook endpoints, by an admin for all runs or by an agent for its own; and senders of signed decisions, by admins.

Each sender has one reviewer in whose name it decides.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sayso.core.clock import new_id
from sayso.core.records.decisions import ActorKind
from sayso.core.records.events import WebhookEvent
from sayso.core.signing import new_signing_key, new_signing_secret
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound
from sayso.wire.channels import Scheme
from service.core.auth.credentials import Principal
from service.core.operations.challenges import Challenge, challenge_receiver
from service.core.operations.people import check_rank
from service.core.outgoing.http import EVENTS_RETRY_FOR_MS
from service.core.store.announcements import Delivery
from service.core.store.attempts import Allowance
from service.core.store.deliveries import Deliveries
from service.core.wiring import Wiring
from service.features.webhooks.store import Endpoint, Endpoints, Sender, Senders, TimedSecret, list_valid, rotate

MOST_ENDPOINTS = 500
MOST_OF_AN_AGENT = 20
DISABLED_BY = "Disabled by "  # how the reason begins of an endpoint that a person disabled
PER_OWNER = Allowance("webhook-verifications", 30, 60)


class EndpointDraft(NamedTuple):
    """What a new endpoint is made from."""

    url: str
    events: tuple[WebhookEvent, ...] = tuple(WebhookEvent)
    scheme: Scheme = "hmac"
    description: str = ""


class NewEndpoint(NamedTuple):
    """An endpoint, and the only copy of its new secret; None for ed25519, whose private key never leaves Sayso."""

    endpoint: Endpoint
    secret: str | None


async def list_endpoints(parts: Wiring, caller: Principal) -> list[Endpoint]:
    """Return the endpoints that the caller manages."""
    owner = _scope_of(caller)
    return [endpoint for endpoint in await parts.part(Endpoints).list_all() if owner in (None, endpoint.owner)]


async def register_endpoint(parts: Wiring, caller: Principal, draft: EndpointDraft) -> NewEndpoint:
    """Save an endpoint, which must be verified before it receives events."""
    owner = _scope_of(caller)
    parts.posts.check_url(draft.url)
    known = await parts.part(Endpoints).list_all()
    if len(known) >= MOST_ENDPOINTS:
        raise Conflict(f"There are {len(known)} endpoints, which is the limit. Delete one first.")
    if owner is not None and sum(endpoint.owner == owner for endpoint in known) >= MOST_OF_AN_AGENT:
        raise Conflict(f"{owner} has {MOST_OF_AN_AGENT} endpoints, which is the limit. Delete one first.")
    secret = _make_secret(draft.scheme)
    endpoint = Endpoint(
        id=new_id("whe"),
        url=draft.url,
        events=tuple(dict.fromkeys(draft.events)),
        owner=owner,
        description=draft.description,
        created_by=caller.name,
        created_at_ms=await parts.schedule.now_ms(),
        secrets=(TimedSecret(secret=secret),),
    )
    await parts.part(Endpoints).add(endpoint)
    return _show_new(endpoint)


async def read_endpoint(parts: Wiring, caller: Principal, endpoint_id: str) -> Endpoint:
    """Return an endpoint of the caller; raises `NotFound`."""
    owner = _scope_of(caller)
    endpoint = await parts.part(Endpoints).find(endpoint_id)
    if endpoint is None or owner not in (None, endpoint.owner):
        raise _unknown(endpoint_id)
    return endpoint


async def verify_endpoint(parts: Wiring, caller: Principal, endpoint_id: str) -> Endpoint:
    """Send a signed challenge to the endpoint, and send it events once it returned the challenge."""
    endpoint = await read_endpoint(parts, caller, endpoint_id)
    secrets = tuple(list_valid(endpoint.secrets, await parts.schedule.now_ms()))
    asked = Challenge(endpoint.url, secrets, (PER_OWNER, caller.name), {"endpoint_id": endpoint.id})
    failure = await challenge_receiver(parts, asked)
    if failure:
        raise Conflict(f"The endpoint failed its verification: {failure}. Correct the receiver and verify again.")
    return await _change(parts, endpoint, lambda known: known.model_copy(update={"state": "active", "reason": ""}))


async def disable_endpoint(parts: Wiring, caller: Principal, endpoint_id: str) -> Endpoint:
    """Send the endpoint no more events until it is verified again."""
    endpoint = await read_endpoint(parts, caller, endpoint_id)
    update = {"state": "disabled", "reason": f"{DISABLED_BY}{caller.name}."}
    return await _change(parts, endpoint, lambda known: known.model_copy(update=update))


async def rotate_endpoint(parts: Wiring, caller: Principal, endpoint_id: str, overlap_s: int) -> NewEndpoint:
    """Give the endpoint a new secret. Until the overlap ends, messages are signed with the old ones, too."""
    endpoint = await read_endpoint(parts, caller, endpoint_id)
    secret, now_ms = _make_secret(scheme_of(endpoint)), await parts.schedule.now_ms()

    def change(current: Endpoint) -> Endpoint:
        return current.model_copy(update={"secrets": rotate(current.secrets, secret, now_ms, overlap_s)})

    return _show_new(await _change(parts, endpoint, change))


async def delete_endpoint(parts: Wiring, caller: Principal, endpoint_id: str) -> None:
    """Delete an endpoint. Its undelivered messages are not sent any more."""
    endpoint = await read_endpoint(parts, caller, endpoint_id)
    await parts.part(Endpoints).delete(endpoint.id)


async def list_failures(parts: Wiring, caller: Principal) -> list[Delivery]:
    """Return the messages that were refused and not delivered since; an agent sees those of its endpoints."""
    failures = await parts.part(Deliveries).list_failures(await parts.schedule.now_ms())
    if _scope_of(caller) is None:
        return failures
    own = {endpoint.id for endpoint in await list_endpoints(parts, caller)}
    return [failure for failure in failures if failure.endpoint_id in own]


async def send_again(parts: Wiring, caller: Principal, message_ids: Sequence[str]) -> int:
    """Send messages again at once, with all their attempts; return their number. Raises `NotFound` for an unknown one.

    Receivers recognize a repeated message by its `webhook-id`.
    """
    own = {endpoint.id for endpoint in await list_endpoints(parts, caller)}
    deliveries, everything = parts.part(Deliveries), _scope_of(caller) is None
    for message_id in message_ids:
        waiting = await deliveries.read(message_id)
        if waiting is None or not (everything or waiting.delivery.endpoint_id in own):
            raise NotFound(f"There is no message {message_id[:100]!r}. The list of failed messages has the ids.")
    now_ms = await parts.schedule.now_ms()
    sent = [await deliveries.send_again(message_id, now_ms + EVENTS_RETRY_FOR_MS, now_ms) for message_id in message_ids]
    return sum(sent)


def scheme_of(endpoint: Endpoint) -> Scheme:
    """Return how the endpoint's messages are signed."""
    return "ed25519" if endpoint.secrets[0].secret.startswith("whsk_") else "hmac"


def _scope_of(caller: Principal) -> str | None:
    """Return the agent whose runs the caller may subscribe to, None for an admin; raises `NotAllowed`."""
    if caller.kind is ActorKind.AGENT:
        return caller.name
    return None


async def _change(parts: Wiring, endpoint: Endpoint, change: Callable[[Endpoint], Endpoint]) -> Endpoint:
    changed = await parts.part(Endpoints).change(endpoint.id, change)
    if changed is None:
        raise _unknown(endpoint.id)
    return changed


def _make_secret(scheme: Scheme) -> str:
    return new_signing_key() if scheme == "ed25519" else new_signing_secret()


def _show_new(endpoint: Endpoint) -> NewEndpoint:
    return NewEndpoint(endpoint, None if scheme_of(endpoint) == "ed25519" else endpoint.secrets[0].secret)


def _unknown(endpoint_id: str) -> NotFound:
    return NotFound(f"There is no endpoint {endpoint_id[:100]!r} for this credential.")


MOST_SENDERS = 200

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class NewSender(NamedTuple):
    """A sender, and the only copy of its new secret."""

    sender: Sender
    secret: str


async def register_sender(parts: Wiring, caller: Principal, name: str, reviewer: str) -> NewSender:
    """Save a sender that decides in the name of an active reviewer, who may do no more than the caller."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("A sender's name has up to 64 of a-z, 0-9, '.', '_' and '-'. Choose another name.")
    person = await parts.reviewers.find(reviewer)
    if person is None or not person.active:
        raise NotFound(f"There is no active reviewer named {reviewer[:64]!r}. Add the reviewer first.")
    await check_rank(parts, caller, person.name)
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
    return await parts.part(Senders).list_all()


async def rotate_sender(parts: Wiring, caller: Principal, sender_id: str, overlap_s: int) -> NewSender:
    """Give a sender a new secret. The old ones are accepted until the overlap ends. It decides as its reviewer."""
    known = await parts.part(Senders).find(sender_id)
    if known is not None:
        await check_rank(parts, caller, known.reviewer)
    secret, now_ms = new_signing_secret(), await parts.schedule.now_ms()

    def change(sender: Sender) -> Sender:
        if sender.revoked_at_ms is not None:
            raise Conflict(f"The sender {sender.name} is revoked. Register a new one.")
        return sender.model_copy(update={"secrets": rotate(sender.secrets, secret, now_ms, overlap_s)})

    return NewSender(await _change_sender(parts, sender_id, change), secret)


async def revoke_sender(parts: Wiring, caller: Principal, sender_id: str) -> Sender:
    """Refuse everything from a sender at once, for good."""
    now_ms = await parts.schedule.now_ms()

    def change(sender: Sender) -> Sender:
        return sender.model_copy(update={"revoked_at_ms": sender.revoked_at_ms or now_ms, "secrets": ()})

    return await _change_sender(parts, sender_id, change)


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


async def _change_sender(parts: Wiring, sender_id: str, change: Callable[[Sender], Sender]) -> Sender:
    changed = await parts.part(Senders).change(sender_id, change)
    if changed is None:
        raise NotFound(f"There is no sender {sender_id[:100]!r}. `sayso webhooks senders list` has the ids.")
    return changed
