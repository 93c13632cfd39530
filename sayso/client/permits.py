"""Obtain the leave to run one call, and say afterwards what came of it: the steps behind `@gate`, for both clients.

The call's key names it for good: whoever comes back with it, after a restart or days later, goes on where it stands.
Leave is consumed before the call starts, under a name made up for this one try. If a try is lost after that, the next
one sees it: the call may have run, and is not started again unless it may be.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, digest_json
from sayso.client.requests import (
    Exchange,
    ask_for_call,
    find_suspension,
    mark_in_doubt,
    new_key,
    redeem,
    report_outcome,
)
from sayso.client.responses import ItemSeen, ReportSeen, Suspension
from sayso.client.retries import Flow, Patience, await_decision, send
from sayso.errors import AlreadyRedeemed, DeadlinePassed, Denied, IdempotencyConflict, InDoubt, Suspended
from sayso.records.terms import REPORT_WITHIN_S
from sayso.records.tool_calls import ToolDefinition

OnDoubt = Literal["raise", "ask"]


@dataclass(frozen=True)
class Wanted:
    """A call that somebody wants to make, and how they want to wait for leave."""

    definition: ToolDefinition
    args: JsonObject
    label: str
    title: str = ""
    context: JsonObject = field(default_factory=dict)
    wait_s: float | None = None
    on_doubt: OnDoubt = "raise"
    report_within_s: int = REPORT_WITHIN_S
    thread_id: str | None = None
    step: int | None = None
    notify: Callable[[str], None] | None = None
    """Called once, with one line, when the wait for a person begins."""

    @property
    def key(self) -> str:
        """The Idempotency-Key that the label comes to, of whatever length and characters that is."""
        return digest_json([self.definition.name, self.label])

    @property
    def exchange(self) -> Exchange[Suspension]:
        """The request that asks for the call."""
        title, context = self.title, self.context
        return ask_for_call(self.definition, self.args, self.key, title, context, self.thread_id, self.step)


@dataclass(frozen=True)
class Permission:
    """Leave that was spent for one try: run exactly these arguments, then conclude."""

    suspension_id: str
    item_id: str
    run_id: str
    holder: str
    args: JsonObject
    idempotency_key: str
    attempt: int


@dataclass(frozen=True)
class Ran:
    """The call ran before, and this is what came of it."""

    report: ReportSeen


def obtain(patience: Patience, wanted: Wanted) -> Flow[Permission | Ran]:
    """Ask, wait, and spend the leave to run the call once.

    Raises `Suspended` when nobody has decided in time, `Denied`, `InDoubt`, `DeadlinePassed` when the leave ended
    unused, `IdempotencyConflict` when the key was used for another call, and what a client raises.
    """
    found = yield from send(patience, wanted.exchange)
    while True:
        if found.pending:
            found = yield from _wait(patience, wanted, found)
            wanted = replace(wanted, notify=None)
        if found.following_id is not None:
            found = yield from send(patience, find_suspension(found.following_id))
            continue
        item = _check(wanted, found)
        if (known := _known(item)) is not None:
            return Ran(known)
        _check_permission(found, item)
        if item.permit is not None and not item.tool.idempotent:
            if wanted.on_doubt == "raise":
                raise _describe_doubt(wanted, found, item)
            found = yield from send(patience, mark_in_doubt(found.id, item.item_id))
            continue
        try:
            return (yield from _redeem(patience, wanted, found, item))
        except AlreadyRedeemed:
            found = yield from send(patience, find_suspension(found.id))


def conclude(
    patience: Patience, permission: Permission, success: bool, output: JsonValue, error: str | None
) -> Flow[Suspension]:
    """Say what came of the call."""
    told = report_outcome(permission.suspension_id, permission.item_id, permission.holder, success, output, error)
    return send(patience, told)


def _wait(patience: Patience, wanted: Wanted, found: Suspension) -> Flow[Suspension]:
    if wanted.wait_s is None or wanted.wait_s > 0:
        if wanted.notify is not None:
            wanted.notify(_describe_wait(patience, wanted, found))
        found = yield from await_decision(patience, found.id, wanted.wait_s)
    if found.pending:
        raise Suspended(
            f"{_describe_wait(patience, wanted, found)}. Make the call again with the same key to go on.",
            suspension_id=found.id,
            tool=wanted.definition.name,
            key=wanted.label,
            link=_link_of(patience, found),
        )
    return found


def _describe_wait(patience: Patience, wanted: Wanted, found: Suspension) -> str:
    until = f" until {found.deadline_at}" if found.deadline_at else ""
    return f"{wanted.definition.name} waits for a person{until} ({_link_of(patience, found)})"


def _link_of(patience: Patience, found: Suspension) -> str:
    """Return the address of the page where people decide the call."""
    return f"{patience.url}/items/{found.id}/{found.items[0].item_id}"


def _redeem(patience: Patience, wanted: Wanted, found: Suspension, item: ItemSeen) -> Flow[Permission]:
    holder = f"try-{new_key()}"
    spent = yield from send(patience, redeem(found.id, item.item_id, holder, wanted.report_within_s))
    return Permission(
        suspension_id=found.id,
        item_id=item.item_id,
        run_id=found.run.id,
        holder=holder,
        args=spent.args,
        idempotency_key=spent.idempotency_key,
        attempt=spent.attempt,
    )


def _check(wanted: Wanted, found: Suspension) -> ItemSeen:
    item = found.items[0]
    if found.status == "cancelled":
        error = found.end.error if found.end else None
        raise Denied(
            f"{item.tool.name} is not to run: the run was cancelled. {error or ''}".strip(), verdict="cancelled"
        )
    if item.tool.name != wanted.definition.name:
        raise IdempotencyConflict(idempotency_key=wanted.label)
    return item


def _known(item: ItemSeen) -> ReportSeen | None:
    """Return what is known to have come of the call already: reported, or told by a person who was asked."""
    if item.permit is not None:
        return item.permit.report
    if item.doubt is None or item.outcome is None:
        return None
    from sayso.transitions.in_doubt import Choice, read_choice  # what only a call in doubt needs

    answer = read_choice(item.outcome.value)
    if answer.choice is Choice.REPORTED:
        return ReportSeen.model_validate(answer.result)
    return ReportSeen(success=True, output=answer.result) if answer.choice is Choice.SKIP else None


def _is_failed(answer: JsonValue) -> bool:
    from sayso.transitions.in_doubt import Choice, read_choice

    return read_choice(answer).choice is Choice.FAIL


def _check_permission(found: Suspension, item: ItemSeen) -> None:
    outcome, name = item.outcome, item.tool.name
    failed = item.doubt is not None and outcome is not None and _is_failed(outcome.value)
    if outcome is None or not outcome.may_run or failed:
        by = outcome.by.id if outcome is not None else "nobody"
        why = f": {outcome.message}" if outcome is not None and outcome.message else "."
        verdict = outcome.verdict if outcome is not None else None
        raise Denied(f"{name} was denied by {by}{why}", by=by, verdict=verdict, suspension_id=found.id)
    if found.end is not None and item.permit is None:
        raise DeadlinePassed(found.end.error or f"The leave to run {name} ended unused. Ask again with a new key.")


def _describe_doubt(wanted: Wanted, found: Suspension, item: ItemSeen) -> InDoubt:
    idempotency_key = item.doubt.idempotency_key if item.doubt is not None else f"{found.id}:{item.item_id}"
    begun = item.permit.redeemed_at.isoformat(timespec="seconds") if item.permit is not None else "some time"
    return InDoubt(
        f"{wanted.definition.name} was begun at {begun} and has not reported back. Whoever began it may still "
        "be at it; call again in a moment. If they were lost, it may have run: look it up under the "
        f"idempotency key {idempotency_key}. Say on_doubt='ask' to have a person decide, or idempotent=True if "
        "running it twice does no harm.",
        suspension_id=found.id,
        key=wanted.label,
    )
