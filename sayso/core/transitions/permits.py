"""Permits: when an item's call may start, the redeeming of its permit, and calls whose result is not known.

A call in doubt of an idempotent tool runs again with the same key. For any other a reviewer chooses to run it
again, skip it, or fail the run. Without an answer the run fails.
"""

from enum import StrEnum

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import iso_utc
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import ActorKind, Permit
from sayso.core.records.events import Event, EventType
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Answer, Doubt, Item, ItemDraft, ItemKind, ItemTool, Prompt, digest_item
from sayso.core.records.suspensions import Change, Intent, Status, SuspensionRecord
from sayso.core.records.terms import Fallback, FallbackAction, RuleTerms
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.legal import check_step
from sayso.errors import DeadlinePassed, IllegalTransition, InvalidInput, StaleDigest

ANSWER_WITHIN_S = 86_400

_FAIL = Fallback(action=FallbackAction.FAIL, message="Nobody could say whether the call had run.")


class Choice(StrEnum):
    """The possible answers about a call in doubt."""

    RUN_AGAIN = "run_again"
    SKIP = "skip"
    FAIL = "fail"
    REPORTED = "reported"
    """Set when the worker that started the call reports its result late."""


REVIEWER_CHOICES = (Choice.RUN_AGAIN, Choice.SKIP, Choice.FAIL)


class DoubtAnswer(Immutable):
    """An answer about a call in doubt. `result` is given only with `skip`."""

    choice: Choice
    result: JsonValue = None


_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "choice": {
            "type": "string",
            "enum": [str(choice) for choice in REVIEWER_CHOICES],
            "description": "Run it again, skip it, or fail the run.",
        },
        "result": {"type": "string", "description": "With skip: the result of the call, if you know it."},
    },
    "required": ["choice"],
    "additionalProperties": False,
}


def put_in_doubt(
    call: ToolCall, definition: str, doubt: Doubt, secrets: tuple[str, ...] = (), *, by_client: bool = False
) -> ItemDraft:
    """Return the item that asks about a call that may have run; `secrets` are the paths of its secret arguments."""
    if by_client:
        starter, reason = f"its client (key {doubt.holder}), which did not report", "Its client did not report a result"
    else:
        starter = f"worker {doubt.holder} (attempt {doubt.attempt}), which was lost before it reported"
        reason = "Its worker was lost during the call"
    body = (
        f"{call.name} was started at {iso_utc(doubt.begun_at_ms)} by {starter} a result. "
        "The call may or may not have had its effect. Check the system it changes; "
        f"its idempotency key is {doubt.idempotency_key}."
    )
    return ItemDraft(
        kind=ItemKind.INPUT,
        call_id=call.call_id,
        index=call.index,
        tool=ItemTool(name=call.name, args=call.args, definition=definition),
        prompt=Prompt(title="This call may already have run", body=body, reason=reason),
        allowed=(Answer.VALUE,),
        response_schema=_SCHEMA,
        terms=RuleTerms(timeout_s=ANSWER_WITHIN_S, start_by_s=ANSWER_WITHIN_S, fallback=_FAIL, secrets=secrets),
        rule_id=None,
        doubt=doubt,
    )


def doubt_intent(intent: Intent) -> Doubt:
    """Return the doubt about a journalled call."""
    return Doubt(**{name: getattr(intent, name) for name in Doubt.model_fields})


def check_choice(value: JsonValue) -> None:
    """Raise `InvalidInput` for a result given with another choice than skip."""
    answer = read_choice(value)
    if answer.result is not None and answer.choice is not Choice.SKIP:
        problem = "A result is accepted only with skip. Choose skip, or omit the result."
        raise InvalidInput(problem, problems=[f"value.result: {problem}"])


def read_choice(value: JsonValue) -> DoubtAnswer:
    """Return the answer in `value`. An unreadable value fails the run: the call must not run twice."""
    try:
        return DoubtAnswer.model_validate(value)
    except ValidationError:
        return DoubtAnswer(choice=Choice.FAIL)


def may_start(item: Item) -> bool:
    """Whether the item's outcome lets a client start its call."""
    outcome = item.outcome
    if outcome is None or not outcome.may_run or item.permit is not None or item.is_void:
        return False
    return item.doubt is None or read_choice(outcome.value).choice is Choice.RUN_AGAIN


def next_lapse(record: SuspensionRecord, now_ms: int) -> int:
    """Return when the next unused permit or missing report lapses; `now_ms` without any."""
    unused = [item.start_by_ms for item in record.items if may_start(item)]
    unreported = [item.permit.report_by_ms for item in record.items if item.permit and item.permit.report is None]
    return min((*unused, *unreported), default=now_ms)


def redeem_permit(
    record: SuspensionRecord, item: Item, permit: Permit, now_ms: int, in_vain: int | None = None
) -> Item:
    """Return the item with its permit redeemed, for exactly the arguments decided on.

    A permit that the attempt `in_vain` redeemed is valid again: its worker was killed before the call started.

    Raises `DeadlinePassed` after the latest start, `StaleDigest` for other arguments, and `IllegalTransition`, also for
    every drill and every plan.
    """
    if item.is_void:
        kind = "drill" if item.drill is not None else "plan"
        raise IllegalTransition(f"Item {item.item_id} is a {kind}. Its permit is void, and its call must not run.")
    outcome = item.outcome
    if outcome is None or not outcome.may_run:
        raise IllegalTransition(f"Item {item.item_id} is not approved. Its call must not run.")
    redeemed = item.permit is not None and item.permit.attempt != in_vain
    if not redeemed and now_ms >= item.start_by_ms:
        raise DeadlinePassed(f"The permit for {item.tool.name} ended at {iso_utc(item.start_by_ms)}.")
    if redeemed and not item.tool.idempotent:
        raise IllegalTransition(f"The permit of item {item.item_id} is already redeemed; its call may have run.")
    args = approved_args(item)
    if not is_confirmed(item, args):
        raise IllegalTransition(
            f"{item.terms.confirm_by} has not confirmed item {item.item_id}. Its call must not run."
        )
    if digest_item(record.binding, item.item_id, item, args, item.terms) != outcome.digest:
        raise StaleDigest(f"The arguments of item {item.item_id} are not those decided on. Its call must not run.")
    return item.model_copy(update={"permit": permit})


def is_confirmed(item: Item, args: JsonObject) -> bool:
    """Return whether the acting user confirmed the call with exactly these arguments, or the terms ask no one."""
    given = item.confirmation
    if item.terms.confirm_by is None:
        return True
    return given is not None and given.confirmed and given.args_digest == digest_json(args)


def approved_args(item: Item) -> JsonObject:
    """Return the arguments that were decided on: the tool call's own, or those of the outcome."""
    if item.outcome is not None and item.outcome.args is not None:
        return item.outcome.args
    return item.tool.args


def shows_effect(item: Item) -> bool:
    """Return whether people decide on an item with a preview of it, which must still hold when its call starts."""
    outcome, plain = item.outcome, item.kind is ItemKind.APPROVAL and item.doubt is None and item.mandate is None
    return item.tool.previews and plain and (outcome is None or outcome.by.kind is not ActorKind.POLICY)


def recover_start(record: SuspensionRecord, started: SuspensionRecord, now_ms: int) -> Change:
    """Return the record with the permits and the journal of `started`, which it has lost; its calls are in doubt then.

    Raises `IllegalTransition` where the suspension is open again or has ended.
    """
    check_step(record, "recover_start")
    have = {item.item_id: item for item in record.items}
    lost = [item for item in started.items if item.permit and not have[item.item_id].permit]
    journal = tuple(intent for intent in started.journal if intent not in record.journal)
    if not lost and not journal:
        return Change(record)
    kept = {item.item_id: item for item in lost}
    update = {
        "items": tuple(kept.get(item.item_id, item) for item in record.items),
        "journal": (*record.journal, *journal),
        "status": Status.RESUMING,
        "lease": started.lease,
        "updated_at_ms": now_ms,
        "due_at_ms": started.due_at_ms or now_ms,
    }
    events = [
        describe_start(item.item_id, item.call_id, item.permit.holder, item.permit.attempt)
        for item in lost
        if item.permit is not None
    ]
    return Change(record.model_copy(update=update), tuple(events))


def is_lost(item: Item, freezes: tuple[Freeze, ...]) -> bool:
    """Whether the store may have lost that the permit of an approved call was redeemed."""
    if item.permit is not None or item.outcome is None or not item.outcome.may_run:
        return False
    return any(freeze.lost is not None and item.outcome.at_ms <= freeze.lost.to_ms for freeze in freezes)


def describe_start(item_id: str, call_id: str, holder: str, attempt: int) -> Event:
    """Return the event of a start that the store had lost."""
    data: JsonObject = {"item_id": item_id, "call_id": call_id, "holder": holder, "attempt": attempt, "recovered": True}
    return Event(EventType.PERMIT_REDEEMED, data)
