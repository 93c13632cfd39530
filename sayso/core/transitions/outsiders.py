"""Transitions of invitations: people outside the desk decide one version of one item, by a link and a mailed code.

What somebody outside sends is compared by its hash only, and every wrong code counts.
"""

from enum import StrEnum
from hmac import compare_digest

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor, ActorKind, Decision, DecisionAction
from sayso.core.records.deliveries import CardDelivery
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import LONGEST_TEXT, Answer, Item, ItemKind
from sayso.core.records.proofs import (
    LONGEST_NOTE,
    OUTSIDE,
    Ending,
    Invitation,
    Invited,
    SentCode,
    allows_address,
)
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.closing import describe_item, put_item
from sayso.core.transitions.deciding import apply_decision, find_item
from sayso.core.transitions.decision_checks import (
    check_change,
    check_entitled,
    check_item_open,
    check_person,
    find_alike,
    is_repeat,
)
from sayso.core.transitions.legal import check_step
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound, SelfApproval, StaleDigest, TooManyRequests

MOST_OPEN = 5  # the most open invitations of one item
MOST_INVITED = 20  # the most invitations of one item, ended ones too
LONGEST_MS = 7 * 86_400_000
SHORTEST_MS = 60_000
CODE_MS = 600_000  # how long a mailed code is valid
COOLING_MS = 60_000  # the time between two codes
MOST_CODES = 5  # the most codes of one invitation
MOST_TRIES = 5  # the most wrong codes of one invitation
PROOF_MS = 1_800_000  # how long the item is shown, and can be decided, after the right code


class InvitationState(StrEnum):
    """What an invitation lets its address do now, or why nothing."""

    OPEN = "open"
    DECIDED = "decided"
    REVOKED = "revoked"
    GUESSED = "guessed"
    RESOLVED = "resolved"
    """Others have decided, or the run was cancelled."""
    EXPIRED = "expired"
    CHANGED = "changed"
    """The item is not as it was when they were invited."""


def find_state(record: SuspensionRecord, item: Item, invitation: Invitation, now_ms: int) -> InvitationState:
    """Return the state of an invitation, but for freezes."""
    if invitation.ended is not None:
        return InvitationState(invitation.ended.value)
    if not item.open or item.undoable is not None or record.status is not Status.PENDING:
        return InvitationState.RESOLVED
    if now_ms >= invitation.until_ms:
        return InvitationState.EXPIRED
    return InvitationState.OPEN if invitation.digest == item.digest else InvitationState.CHANGED


def find_invitation(item: Item, invitation_id: str) -> Invitation:
    """Return the invitation of that id; raises `NotFound`."""
    for invitation in item.invitations:
        if invitation.id == invitation_id:
            return invitation
    raise NotFound(f"The item {item.item_id} has no invitation {invitation_id!r}. List its invitations.")


def may_be_asked(item: Item) -> bool:
    """Return whether an item can be decided by somebody outside, if its rule allows an address."""
    terms = item.terms
    more = terms.step_up is not None or terms.match_number  # than a mailed code proves
    plain = item.kind is ItemKind.APPROVAL and item.mandate is None and Answer.APPROVE in item.allowed
    return bool(terms.outsiders) and plain and not more


def invite(
    record: SuspensionRecord, item_id: str, invitation: Invitation, by: Actor, now_ms: int, lost_ms: int = 0
) -> Change:
    """Invite an address that the rule allows to decide the item as it is; the same invitation again changes nothing.

    Its mail is queued with it. Raises `NotAllowed` for who may not decide on the item, or for another address,
    `Conflict` for an address that is invited or has decided, and as `decide` does.
    """
    item = find_item(record, item_id)
    if any(known.id == invitation.id and known.by == by.id for known in item.invitations):
        return Change(record)
    check_change(record, item, "invite", now_ms - lost_ms)
    by, _ = check_entitled(record, item, by)
    if invitation.digest != item.digest:
        raise StaleDigest(digest=item.digest)
    _check_invited(record, item, invitation, now_ms)
    until_ms = min(invitation.until_ms, now_ms + LONGEST_MS, item.terms.deadline_at_ms)
    if until_ms < now_ms + SHORTEST_MS:
        raise InvalidInput(
            f"The invitation would end at {iso_utc(until_ms)}. It needs a minute; ask a reviewer instead."
        )
    invitation = invitation.model_copy(update={"by": by.id, "at_ms": now_ms, "until_ms": until_ms})
    delivery = CardDelivery(channel=invitation.channel, person=invitation.name, invitation=invitation.id)
    data = _describe(record, item, invitation) | {"by": by.model_dump(mode="json"), "note": invitation.note}
    data |= {"until_ms": until_ms, "digest": item.digest}
    update = {"invitations": (*item.invitations, invitation), "deliveries": (*item.deliveries, delivery)}
    invited = item.model_copy(update=update)
    return put_item(record, invited, (Event(EventType.OUTSIDER_INVITED, data),), now_ms)


def _check_invited(record: SuspensionRecord, item: Item, invitation: Invitation, now_ms: int) -> None:
    """Raise unless the rule lets this address be invited now."""
    address, name = invitation.address, invitation.name
    if not may_be_asked(item):
        raise NotAllowed("Nobody outside can decide this item. Ask a reviewer, or add outsiders to its rule.")
    if not allows_address(item.terms.outsiders, address):
        allowed = ", ".join(item.terms.outsiders)
        raise NotAllowed(f"The rule does not let {address} decide. It allows {allowed}.", address=address)
    if address in (person.lower() for person in (*record.run.requesters, *record.run.list_excluded(item.terms))):
        raise SelfApproval(f"{address} requested this call. Invite somebody else.", owner=address)
    if len(invitation.note) > LONGEST_NOTE:
        raise InvalidInput(f"A note has at most {LONGEST_NOTE} characters, not {len(invitation.note)}. Shorten it.")
    if any(decision.by.id == name for decision in item.decisions):
        raise Conflict(f"{address} has already decided on this item. Nothing was changed.")
    opened = [known for known in item.invitations if known.is_open(item.digest, now_ms)]
    if any(known.address == address for known in opened):
        raise Conflict(f"{address} is invited already. Revoke that invitation first, to send another link.")
    if len(opened) >= MOST_OPEN:
        raise Conflict(f"{MOST_OPEN} invitations to this item are open. Revoke one first.")
    if len(item.invitations) >= MOST_INVITED:
        raise Conflict(f"{MOST_INVITED} invitations to this item were made. Decide it, or ask another reviewer.")


def revoke_invitation(record: SuspensionRecord, item_id: str, invitation_id: str, by: Actor, now_ms: int) -> Change:
    """End an invitation; one that has ended stays as it is. Raises `NotAllowed` for who may not decide on the item.

    Who invited may always revoke.
    """
    item = find_item(record, item_id)
    invitation = find_invitation(item, invitation_id)
    check_person(by)
    if invitation.by != by.id:
        check_entitled(record, item, by)
    if invitation.ended is not None:
        return Change(record)
    check_item_open(record, item)
    check_step(record, "revoke_invitation")
    ended = _end(invitation, Ending.REVOKED, by.id, now_ms)
    author = Actor(id=by.id, kind=by.kind, channel=by.channel)
    data = _describe(record, item, ended) | {"by": author.model_dump(mode="json"), "ending": Ending.REVOKED.value}
    return put_item(record, _replace(item, ended), (Event(EventType.INVITATION_CLOSED, data),), now_ms)


def send_code(record: SuspensionRecord, item_id: str, token_hash: str, code_hash: str, now_ms: int) -> Change:
    """Make a code of an open invitation the only valid one; it is mailed once this is saved.

    Raises `NotFound` for another link, `Conflict` for an invitation that has ended, and `TooManyRequests` within a
    minute of the last code or after five of them.
    """
    item, invitation = _find_open(record, item_id, token_hash, "send_code", now_ms)
    if invitation.code is not None and now_ms < invitation.code.at_ms + COOLING_MS:
        wait_s = -(-(invitation.code.at_ms + COOLING_MS - now_ms) // 1000)
        raise TooManyRequests(f"A code was mailed just now. Ask for another in {wait_s} s.", retry_after_s=wait_s)
    if invitation.codes >= MOST_CODES:
        raise TooManyRequests(f"{MOST_CODES} codes were mailed. Ask {invitation.by} for another invitation.")
    sent = SentCode(hash=code_hash, at_ms=now_ms, until_ms=now_ms + CODE_MS)
    update = {"code": sent, "codes": invitation.codes + 1, "proof_hash": "", "proof_until_ms": 0}
    event = Event(EventType.OUTSIDER_CODE_SENT, _describe(record, item, invitation))
    return put_item(record, _replace(item, invitation.model_copy(update=update)), (event,), now_ms)


def enter_code(
    record: SuspensionRecord, item_id: str, token_hash: str, code_hash: str, proof_hash: str, now_ms: int
) -> Change:
    """Take a code. The right one is used up and makes `proof_hash` that of who may see the item and decide.

    A wrong one counts, and the last of `MOST_TRIES` ends the invitation. Without a valid code nothing changes.
    """
    item, invitation = _find_open(record, item_id, token_hash, "enter_code", now_ms)
    code = invitation.code
    if code is None or now_ms >= code.until_ms:
        return Change(record)
    if compare_digest(code.hash, code_hash):
        kept = {"hash": "", "until_ms": 0}  # when it was sent still limits the next one
        update = {"proof_hash": proof_hash, "proof_until_ms": now_ms + PROOF_MS, "code": code.model_copy(update=kept)}
        proven = _replace(item, invitation.model_copy(update=update))
        data = _describe(record, item, invitation) | {"by": _actor_of(invitation).model_dump(mode="json")}
        return put_item(record, proven, (Event(EventType.OUTSIDER_PROVEN, data),), now_ms)
    tried = invitation.model_copy(update={"tries": invitation.tries + 1})
    if tried.tries < MOST_TRIES:
        return put_item(record, _replace(item, tried), (), now_ms)
    ended = _end(tried, Ending.GUESSED, "", now_ms)
    data = _describe(record, item, ended) | {"ending": Ending.GUESSED.value}
    return put_item(record, _replace(item, ended), (Event(EventType.INVITATION_CLOSED, data),), now_ms)


def is_proven(invitation: Invitation, proof_hash: str, now_ms: int) -> bool:
    """Return whether the page got this proof for the right code, not long ago."""
    known = invitation.proof_hash
    return bool(known) and now_ms < invitation.proof_until_ms and compare_digest(known, proof_hash)


def decide_outside(
    record: SuspensionRecord, decision: Decision, token_hash: str, proof_hash: str, now_ms: int, lost_ms: int = 0
) -> Change:
    """Record the decision of somebody outside, which spends the invitation: approve as is, or deny with a reason.

    It counts in the current stage as a reviewer's does, and never as the acting user's confirmation. The same decision
    again changes nothing. Raises `NotFound` for another link, `NotAllowed` without proof, `Conflict` for an invitation
    that has ended, and as `decide` does for an item that is closed or late.
    """
    item = find_item(record, decision.item_id)
    denies, message = decision.action is DecisionAction.DENY, (decision.message or "").strip()
    update: dict[str, object] = {"message": message if denies else None}
    update["args_digest"] = find_by_token(item, token_hash).digest
    decision = decision.model_copy(update=update)
    if is_repeat(item, decision):
        return Change(record)
    item, invitation = _find_open(record, decision.item_id, token_hash, "decide", now_ms)
    if not is_proven(invitation, proof_hash, now_ms):
        raise NotAllowed("The code was entered too long ago. Ask for another one.")
    if not may_be_asked(item) or not allows_address(item.terms.outsiders, invitation.address):
        raise NotAllowed("Nobody outside can decide this item any longer.")
    if decision.action not in (DecisionAction.APPROVE, DecisionAction.DENY) or decision.args is not None:
        raise InvalidInput("Approve the call as it is, or deny it with a reason.")
    if denies and not 1 <= len(message) <= LONGEST_TEXT:
        raise InvalidInput(f"Write why you deny, in 1 to {LONGEST_TEXT} characters.")
    by = _actor_of(invitation)
    if find_alike(item, by) is not None:
        raise Conflict("You have already decided on this item. Nothing was changed.")
    invited = Invited(id=invitation.id, address=invitation.address, by=invitation.by)
    closed = _replace(item, _end(invitation, Ending.DECIDED, by.id, now_ms))
    return apply_decision(
        record.with_item(closed), closed, decision.model_copy(update={"by": by, "invited": invited}), now_ms, lost_ms
    )


def find_by_token(item: Item, token_hash: str) -> Invitation:
    """Return the invitation of a link; raises `NotFound` for an unknown one."""
    for invitation in item.invitations:
        if compare_digest(invitation.token_hash, token_hash):
            return invitation
    raise NotFound("This link is not valid. Open the link of the newest mail.")


def _find_open(
    record: SuspensionRecord, item_id: str, token_hash: str, step: str, now_ms: int
) -> tuple[Item, Invitation]:
    """Return the open invitation of a link, with its item; raises `NotFound` for another token, and `Conflict`."""
    check_step(record, step)
    item = find_item(record, item_id)
    invitation = find_by_token(item, token_hash)
    state = find_state(record, item, invitation, now_ms)
    if state is not InvitationState.OPEN:
        raise Conflict("This invitation has ended. Open its link again, which says why.", state=state.value)
    return item, invitation


def _actor_of(invitation: Invitation) -> Actor:
    return Actor(id=invitation.name, kind=ActorKind.HUMAN, channel=OUTSIDE)


def _end(invitation: Invitation, ending: Ending, by: str, now_ms: int) -> Invitation:
    """Return the invitation as ended, without anything that a guess could match."""
    cleared = {"code": None, "proof_hash": "", "proof_until_ms": 0, "nonce": ""}
    return invitation.model_copy(update={"ended": ending, "ended_at_ms": now_ms, "ended_by": by, **cleared})


def _replace(item: Item, invitation: Invitation) -> Item:
    kept = (invitation if other.id == invitation.id else other for other in item.invitations)
    return item.model_copy(update={"invitations": tuple(kept)})


def _describe(record: SuspensionRecord, item: Item, invitation: Invitation) -> JsonObject:
    return {**describe_item(record, item), "invitation_id": invitation.id, "address": invitation.address}
