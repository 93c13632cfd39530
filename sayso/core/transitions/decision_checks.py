"""Checks of a decision: is the item open, in time and as the reviewer saw it, and may the reviewer decide?"""

from hmac import compare_digest

from sayso.core.canonical_json import canonical_json
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import (
    Actor,
    ActorKind,
    Decision,
    DecisionAction,
    DecisionRequest,
    Delegate,
    Limits,
    Represented,
    is_covered,
)
from sayso.core.records.envelopes import RequestedChanges
from sayso.core.records.items import Answer, Item, ItemKind
from sayso.core.records.proofs import Proof, digest_content, make_challenge
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.terms import GROUP_PREFIX, MOST_ROUNDS, Terms
from sayso.core.transitions.legal import check_step
from sayso.core.transitions.quorum import find_counted
from sayso.errors import (
    AlreadyDecided,
    Conflict,
    DeadlinePassed,
    IdempotencyConflict,
    IllegalTransition,
    InvalidInput,
    NotAllowed,
    SelfApproval,
    StaleDigest,
    StepUpRequired,
    WrongNumber,
)

MOST_VOIDED = 20
"""The most decisions of one person that an item keeps as void: of who changed their mind, or was deactivated."""


def check_open(record: SuspensionRecord, now_ms: int) -> None:
    """Raise `AlreadyDecided` or `DeadlinePassed` when an item can no longer be decided or withdrawn."""
    for item in record.items:
        if item.outcome is not None:
            check_item_open(record, item)
        elif record.status is Status.PENDING:
            check_in_time(item, now_ms)


def describe_outcome(item: Item) -> str:
    """Return a sentence: who decided the item, how and when."""
    outcome = item.outcome
    if outcome is None:
        return "This item is still open."
    reason = f", saying: {outcome.message.removesuffix('.')}" if outcome.message else ""
    return f"{outcome.by.id} {outcome.verdict} this at {iso_utc(outcome.at_ms)}{reason}."


def is_repeat(item: Item, decision: Decision) -> bool:
    """Return whether the item has this decision already; raises `IdempotencyConflict` for a different one."""
    undoable = (item.undoable.decision,) if item.undoable is not None else ()
    for earlier in (*item.decisions, *undoable):
        same_key = earlier.idempotency_key is not None and earlier.idempotency_key == decision.idempotency_key
        if earlier.id != decision.id and not (same_key and earlier.by.id == decision.by.id):
            continue
        if _content(earlier) != _content(decision):
            raise IdempotencyConflict(idempotency_key=decision.idempotency_key)
        return True
    return False


def _content(decision: Decision) -> bytes:
    asked = decision.changes.model_dump(mode="json") if decision.changes is not None else None
    about = [decision.action, decision.args, decision.value, decision.message, decision.args_digest, asked]
    return canonical_json(about)


def check_decision(record: SuspensionRecord, item: Item, decision: Decision, verb: str, now_ms: int) -> Actor:
    """Return who decides, as recorded; raises the error of `decide` for a decision that the item cannot take."""
    by = check_draft(record, item, decision, verb, now_ms)
    check_step_up(record, item, decision)
    if item.terms.match_number and decision.action is not DecisionAction.DENY:
        given, number = decision.number, item.secret_number
        if not number or given is None or not compare_digest(given.encode(), number.encode()):
            fault = "is missing" if given is None else "is not the right one"
            raise WrongNumber(f"The number {fault}. Ask {record.run.owner} for the two digits of this item.")
    return by


def check_step_up(record: SuspensionRecord, item: Item, decision: Decision) -> None:
    """Raise `StepUpRequired` unless a passkey signed this decision, or a code was used, where the terms ask for it.

    Both were verified before; here a signature must be one of this decision. A denial needs none, and neither a grant
    nor an offer can be made, which would let calls run that nobody secures.
    """
    if item.terms.step_up is None:
        return
    if decision.grant_id or decision.offer is not None:
        raise NotAllowed(
            f"Each approval of this item needs a {item.terms.step_up}, so it grants and offers nothing. Leave that out."
        )
    if decision.action is DecisionAction.DENY:
        return
    signed = decision.proof is not None and _fits(decision.proof, decision)
    if signed or (decision.code_used and item.terms.step_up == "code"):
        return
    place = f"/items/{record.id}/{item.item_id}"
    needed = "the reviewer's passkey. Approve it"
    if item.terms.step_up == "code":
        needed = "a code of the reviewer's authenticator app, or their passkey. Add the code, or approve it"
    raise StepUpRequired(f"This approval needs {needed} on its page: {place}", page=place)


def _fits(proof: Proof, decision: Decision) -> bool:
    """Return whether a proof is of this decision, by a person whom the authenticator verified."""
    content = digest_content(decision.args, decision.value)
    challenge = make_challenge(decision.args_digest, decision.action, content, proof.nonce)
    return proof.content == content and proof.signs(challenge)


def request_changes(item: Item, request: DecisionRequest) -> RequestedChanges | None:
    """Return the changes that a denial requests, None without any; raises `InvalidInput` where the item takes none."""
    if request.changes is None:
        return None
    number, rounds = _count_rounds(item)
    if not _may_change(item):
        raise InvalidInput("Only the arguments of a call can be changed. Decide without changes.")
    if number > rounds:
        raise InvalidInput(f"Changes of this call can be requested {rounds} times. Deny it without them.")
    return RequestedChanges(paths=request.changes.paths, round=number, rounds=rounds)


def takes_changes(item: Item) -> bool:
    """Return whether a denial of the item may request changes."""
    number, rounds = _count_rounds(item)
    return Answer.DENY in item.allowed and _may_change(item) and number <= rounds


def _may_change(item: Item) -> bool:
    return item.kind is ItemKind.APPROVAL and item.doubt is None and item.mandate is None


def _count_rounds(item: Item) -> tuple[int, int]:
    """Return the number of the next request for changes, and how many there may be."""
    rounds = MOST_ROUNDS if item.terms.rounds is None else item.terms.rounds
    return 1 if item.revises is None else item.revises.round + 1, rounds


def check_draft(record: SuspensionRecord, item: Item, decision: Decision, verb: str, now_ms: int) -> Actor:
    """Check a decision as `check_decision` does, but for the number, which a reviewer types last."""
    check_change(record, item, verb, now_ms)
    if decision.args_digest != item.digest:
        raise StaleDigest(digest=item.digest)
    by = check_reviewer(record, item, decision.by)
    answer = Answer.EDIT if decision.args is not None else Answer(decision.action)
    if answer not in item.allowed or (answer is Answer.EDIT and decision.action is not DecisionAction.APPROVE):
        allowed = ", ".join(item.allowed)
        raise InvalidInput(f"The answer '{answer}' is not allowed for this item. Choose {allowed}.", allowed=allowed)
    if decision.action is DecisionAction.VALUE and item.choices is not None:
        offered = [canonical_json(choice) for choice in item.choices]
        if canonical_json(decision.value) not in offered:
            raise InvalidInput("The value is not one of the item's choices. Choose one of them.", choices=item.choices)
    return by


def check_change(record: SuspensionRecord, item: Item, verb: str, now_ms: int) -> None:
    """Raise unless the item is open and in time, and the step `verb` is legal."""
    check_item_open(record, item)
    check_step(record, verb)
    check_in_time(item, now_ms)


def check_item_open(record: SuspensionRecord, item: Item) -> None:
    """Raise `AlreadyDecided` or `IllegalTransition` for a closed item, `Conflict` if a decision takes effect soon."""
    if item.outcome is not None:
        raise AlreadyDecided(
            f"{describe_outcome(item)} Nothing was changed.",
            decided_by=item.outcome.by.id,
            verdict=item.outcome.verdict,
            decided_at_ms=item.outcome.at_ms,
        )
    if item.undoable is not None and record.status is Status.PENDING:
        at = iso_utc(item.undoable.until_ms)
        raise Conflict(f"A decision on this item takes effect at {at}. Nothing was changed; read it again after that.")
    if record.status is Status.CANCELLED:
        raise IllegalTransition(f"The run was cancelled at {iso_utc(record.updated_at_ms)}. Nothing was changed.")


def check_in_time(item: Item, now_ms: int) -> None:
    """Raise `DeadlinePassed` after the item's deadline."""
    if now_ms >= item.terms.deadline_at_ms:
        at_ms, fallback = item.terms.deadline_at_ms, item.terms.fallback.action
        problem = f"The deadline passed at {iso_utc(at_ms)}; the fallback '{fallback}' decides. Nothing was changed."
        raise DeadlinePassed(problem, deadline_at_ms=at_ms)


def check_entitled(record: SuspensionRecord, item: Item, by: Actor) -> tuple[Actor, str]:
    """Return the actor as `entitle` does, and as whom else they count; raises `NotAllowed` or `SelfApproval`."""
    check_person(by)
    check_other_than_requester(record, item, by)
    # Who makes or resets the credential after the items were asked counts as its owner.
    made = isinstance(by, Delegate) and by.made_by != by.id and by.made_at_ms >= record.created_at_ms
    counts_as = by.made_by if made and isinstance(by, Delegate) else ""
    if counts_as in record.run.list_excluded(item.terms):
        raise SelfApproval(f"{counts_as} made or reset what you signed in with, and requested this call.", owner=by.id)
    if isinstance(by, Delegate) and not _covers(by.decides, record, item):
        raise NotAllowed("Your roles do not let you decide this item. Ask an admin for one that does.", person=by.id)
    entitled = entitle(record, item, by)
    if entitled is None:
        reviewers = list(item.deciders)
        raise NotAllowed(f"Only {', '.join(reviewers)} can decide this item. Ask one of them.", reviewers=reviewers)
    return entitled, counts_as


def check_reviewer(record: SuspensionRecord, item: Item, by: Actor) -> Actor:
    """Return the actor as `entitle` does; raises `NotAllowed` or `AlreadyDecided` for one who cannot decide."""
    entitled, counts_as = check_entitled(record, item, by)
    if any(earlier.by.id == by.id for earlier in item.decisions):
        raise AlreadyDecided("You have already decided on this item; it waits for other reviewers.", decided_by=by.id)
    counted = find_counted(item, entitled)
    if counted is not None:
        raise AlreadyDecided(
            f"{counted.by.id} has already decided on this item, for the same reviewer; it waits for other reviewers.",
            decided_by=counted.by.id,
        )
    if count_voided(item, by.id) >= MOST_VOIDED:
        raise AlreadyDecided(
            f"{MOST_VOIDED} decisions of {by.id} on this item no longer count. Another reviewer must decide.",
            decided_by=by.id,
        )
    by = entitled.model_copy(update={"counts_as": counts_as}) if counts_as else entitled
    if (earlier := find_alike(item, by)) is None:
        return by
    other = earlier.by
    maker, person = (other.counts_as, other.id) if other.counts_as else (by.counts_as, by.id)
    raise AlreadyDecided(
        f"{maker} made or reset the credential of {person}, so both count as one person, who has decided. "
        "Another reviewer must decide, or the person with a password and keys of their own.",
        decided_by=other.id,
    )


def count_voided(item: Item, person: str) -> int:
    """Return how many decisions of a person on an item no longer count."""
    return sum(decision.by.id == person for decision in item.voided)


def check_person(by: Actor) -> None:
    """Raise `NotAllowed` for an agent."""
    if by.kind is not ActorKind.HUMAN:
        raise NotAllowed("An agent's key can ask and read, but never decide. Sign in as a reviewer.", kind=by.kind)


def find_alike(item: Item, by: Actor) -> Decision | None:
    """Return the earlier decision that counts as the same person's, by whichever credential."""
    return next((decision for decision in item.decisions if decision.by.human == by.human), None)


def check_other_than_requester(record: SuspensionRecord, item: Item, by: Actor) -> None:
    """Raise `SelfApproval` for a requester, or for who made the key, where the terms refuse them."""
    if by.id not in record.run.list_excluded(item.terms):
        return
    if by.id in record.run.requesters:
        raise SelfApproval(owner=by.id)
    raise SelfApproval("You made the key of this agent, so another reviewer must decide.", owner=by.id)


def check_canceller(record: SuspensionRecord, by: Actor, *, is_admin: bool) -> None:
    """Raise `NotAllowed` unless a person is admin or requester, or may deny all items that are open, or all.

    Nobody withdraws an offer to undo what their own agent did.
    """
    requested = by.id in record.run.requesters and not any(item.reverses for item in record.items)
    if by.kind is not ActorKind.HUMAN or is_admin or requested:
        return
    for item in [item for item in record.items if item.open] or record.items:
        if not may_decide(record, item, by):
            named = ", ".join(item.deciders) or "another reviewer"
            raise NotAllowed(
                f"You may not deny {item.tool.name} ({item.item_id}), so you cannot cancel its run. "
                f"Ask {named}, {record.run.owner} or an admin."
            )


def may_decide(record: SuspensionRecord, item: Item, by: Actor) -> bool:
    """Return whether this actor is one of the item's reviewers."""
    if by.kind is not ActorKind.HUMAN or by.id in record.run.list_excluded(item.terms):
        return False
    return entitle(record, item, by) is not None


def entitle(record: SuspensionRecord, item: Item, by: Actor) -> Actor | None:
    """Return the actor with what entitles them to decide: only the needed groups, and the absent person if any.

    Returns None if nothing does. Terms without reviewers entitle everybody. Nobody decides for somebody about a call
    that they requested themselves.
    """
    terms = item.terms
    if isinstance(by, Delegate) and not _covers(by.decides, record, item):
        return None
    groups = _find_groups(terms, by.groups)
    if item.drill is not None and item.drill.reviewer:
        return _keep(by, groups if terms.quorum.each_of else (), "") if by.id == item.drill.reviewer else None
    if not terms.reviewers or by.id in terms.reviewers:
        return _keep(by, groups if terms.quorum.each_of else (), "")
    if groups:
        return _keep(by, groups, "")
    absents = by.represents if isinstance(by, Delegate) else ()
    represented = [absent for absent in absents if _may_represent(record, item, by, absent)]
    free = (absent for absent in represented if find_counted(item, _keep(by, (), absent.person)) is None)
    chosen = next(free, represented[0] if represented else None)
    return _keep(by, _find_groups(terms, chosen.groups), chosen.person) if chosen is not None else None


def _may_represent(record: SuspensionRecord, item: Item, by: Actor, absent: Represented) -> bool:
    excluded = record.run.list_excluded(item.terms)
    if not {by.id, *absent.through}.isdisjoint({*record.run.requesters, *excluded}) or absent.person in excluded:
        return False
    named = absent.person in item.terms.reviewers or bool(_find_groups(item.terms, absent.groups))
    return named and _covers(absent.decides, record, item)


def _covers(limits: Limits, record: SuspensionRecord, item: Item) -> bool:
    return is_covered(limits, item.tools[-1], record.run.agent, item.deciders)


def _keep(by: Actor, groups: tuple[str, ...], for_person: str) -> Actor:
    if type(by) is Actor and (groups, for_person) == (by.groups, by.for_person):
        return by
    return Actor(id=by.id, kind=by.kind, channel=by.channel, groups=groups, for_person=for_person)


def _find_groups(terms: Terms, groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(group for group in groups if f"{GROUP_PREFIX}{group}" in terms.reviewers)
