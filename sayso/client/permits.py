"""Permits of gated calls: submit the call, wait for a decision, redeem the permit once, report the result.

The same key continues the same call, after a restart or days later. The permit is redeemed before the call starts, by
a holder that is unique to the attempt. If that attempt is lost, the next one finds the redeemed permit: the call may
have run, and only an idempotent call starts again.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import JsonValue
from pydantic_core import to_json

from sayso import errors
from sayso.client import holders
from sayso.client.requests import Request, find_run, find_suspension, mark_in_doubt, redeem, report_outcome
from sayso.client.retries import Flow, RetryPolicy, await_decision, poll, send
from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.records.terms import REPORT_WITHIN_S
from sayso.core.records.tools import ToolDefinition
from sayso.runner.tools import describe_error, plain_json
from sayso.wire.items import ItemView, PermitView, ReportView
from sayso.wire.suspensions import RedeemedItem, RunView, SuspensionView

if TYPE_CHECKING:
    from sayso.core.transitions.permits import DoubtAnswer


OnDoubt = Literal["raise", "ask"]

_CHECK_S = 5  # how often a wait for another process of this machine checks that it still runs


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """What reviewers read about a call, and how to wait for it."""

    title: str = ""
    """What reviewers read above the call; by default the tool's name."""
    context: JsonObject = field(default_factory=dict)
    """What the agent says about the call; rules read it as `claimed`."""
    wait_s: float | None = None
    """Seconds to wait before `Suspended` is raised: none is until the deadline, 0 does not wait."""
    on_doubt: OnDoubt = "raise"
    """For a call that an earlier process started and never reported: `raise` raises `InDoubt`, `ask` asks a person."""
    report_within_s: int = REPORT_WITHIN_S
    """Seconds within which a started call must report; after that its run ends as failed."""
    thread_id: str | None = None
    """Name of the conversation. The desk counts its calls as `step`, and rules read which tools ran in it."""
    step: int | None = None
    """Number of the model's turn, if you know it; the higher of both counts."""
    again: bool = False
    """Ask once more under a key whose item nobody decided in time, or whose approved call did not start in time."""
    revises: str = ""
    """The item of which the call is a new version: `ChangesRequested.item`. In a thread, the desk finds it itself."""
    on_behalf_of: str | Callable[[], str | None] | None = field(default=None, repr=False)
    """Signed token that names the person for whom the agent acts, or a function that returns it."""


@dataclass(frozen=True)
class GatedCall(CallOptions):
    """A call that requires a permit, and how to wait for it."""

    definition: ToolDefinition
    args: JsonObject
    label: str
    notify: Callable[[str], None] | None = None
    """Called once, with one line, when the wait for a reviewer begins."""

    @property
    def key(self) -> str:
        """The Idempotency-Key: a digest, because a label may have any length and characters."""
        return digest_json([self.definition.name, self.label])

    @property
    def request(self) -> Request[SuspensionView]:
        definition = self.definition.model_dump(mode="json", include={"description", "parameters", "idempotent"})
        call: JsonObject = {"tool": self.definition.name, "args": self.args, "definition": definition}
        call |= {"revises": self.revises} if self.revises else {}
        body: JsonObject = {"mode": "poll", "calls": [call], "title": self.title, "context": self.context}
        body |= {name: value for name in ("thread_id", "step") if (value := getattr(self, name)) is not None}
        body |= {"again": True} if self.again else {}
        token = self.on_behalf_of() if callable(self.on_behalf_of) else self.on_behalf_of
        return Request("POST", "/api/v1/suspensions", SuspensionView, body=body, key=self.key, on_behalf_of=token)


class RedeemedPermit(RedeemedItem):
    """A permit redeemed for one attempt: run exactly `args`, then report the result."""

    run_id: str
    holder: str


@dataclass(frozen=True)
class EarlierResult:
    """The result of an earlier attempt of the call, under the caller's key."""

    report: ReportView
    label: str


def obtain_permit(
    policy: RetryPolicy, call: GatedCall, suspension: SuspensionView | None = None
) -> Flow[RedeemedPermit | EarlierResult]:
    """Submit a call unless `suspension` has it, wait for its decision, and redeem its permit once.

    If another attempt under this key runs the call, its report is awaited: for `wait_s`, or until its time to report is
    over. Raises `Suspended` if nobody decides within `wait_s`, `Denied`, `InDoubt`, `DeadlinePassed` for an expired
    permit, `IdempotencyConflict` for another call's key, `Withdrawn` for another definition, and the errors of `send`.
    """
    suspension = suspension or (yield from _submit(policy, call))
    definition = suspension.items[0].tool.definition
    waited: set[str] = set()
    while True:
        if suspension.pending:
            suspension = yield from _wait(policy, call, suspension)
            call = replace(call, notify=None)
        if suspension.following_id is not None:
            suspension = yield from send(policy, find_suspension(suspension.following_id))
            _check_definition(call, suspension, definition)
            continue
        item = _check_item(call, suspension)
        if (report := find_report(item)) is not None:
            return EarlierResult(report, call.label)
        _check_outcome(call, suspension, item)
        if item.permit is not None and call.wait_s != 0 and _may_report(call, item, waited):
            waited.add(item.permit.holder)
            suspension = yield from _await_report(policy, call, suspension, item.permit)
            continue
        if item.permit is not None and not _may_run_twice(call, item):
            if call.on_doubt == "raise" or suspension.end is not None:
                raise _describe_doubt(call, suspension, item)
            suspension = yield from send(policy, mark_in_doubt(suspension.id, item.item_id))
            continue
        redeemed = yield from _redeem(policy, call, suspension, item)
        if isinstance(redeemed, RedeemedPermit):
            return redeemed
        suspension = redeemed


def _submit(policy: RetryPolicy, call: GatedCall) -> Flow[SuspensionView]:
    try:
        return (yield from send(policy, call.request))
    except errors.IdempotencyConflict as conflict:
        raise _describe_conflict(call, conflict) from conflict


def _redeem(
    policy: RetryPolicy, call: GatedCall, suspension: SuspensionView, item: ItemView
) -> Flow[RedeemedPermit | SuspensionView]:
    """Redeem the permit, or return the suspension as it is once another attempt or another item came first."""
    holder = holders.begin()
    try:
        redeemed = yield from send(policy, redeem(suspension.id, item.item_id, holder, call.report_within_s))
        return RedeemedPermit(run_id=suspension.run.id, holder=holder, **dict(redeemed))
    except BaseException as refused:
        holders.end(holder)
        if isinstance(refused, errors.DeadlinePassed):
            raise _describe_lateness(call, suspension) from refused
        if not isinstance(refused, errors.AlreadyRedeemed | errors.IllegalTransition):
            raise
        now = yield from send(policy, find_suspension(suspension.id))
        if isinstance(refused, errors.IllegalTransition) and now.following_id is None:
            raise
        return now


def _wait(policy: RetryPolicy, call: GatedCall, suspension: SuspensionView) -> Flow[SuspensionView]:
    name = call.definition.name
    if call.wait_s is None or call.wait_s > 0:
        if call.notify is not None:
            call.notify(describe_wait(policy, name, suspension))
        suspension = yield from await_decision(policy, suspension.id, call.wait_s)
    if suspension.pending:
        raise errors.Suspended(
            f"{describe_wait(policy, name, suspension)}. Make the call again with the same key to continue.",
            suspension_id=suspension.id,
            tool=name,
            key=call.label,
            link=build_link(policy.url, suspension),
        )
    return suspension


def _may_report(call: GatedCall, item: ItemView, waited: set[str]) -> bool:
    """Whether to wait for the report of the attempt that started the call.

    On another machine it may run or be lost. Then a call that may run twice starts again, and with `ask` a person says.
    """
    permit = item.permit
    if permit is None or permit.holder in waited:
        return False
    running = holders.is_running(permit.holder)
    return running is True or (running is None and not _may_run_twice(call, item) and call.on_doubt == "raise")


def _may_run_twice(call: GatedCall, item: ItemView) -> bool:
    """Whether the tool was approved as idempotent, and still is."""
    return item.tool.idempotent and call.definition.idempotent


def _await_report(
    policy: RetryPolicy, call: GatedCall, suspension: SuspensionView, permit: PermitView
) -> Flow[SuspensionView]:
    """Wait until another attempt of the call reports or is lost, for at most `wait_s`, and read the suspension again.

    The desk ends the run of a call that is not reported in time.
    """
    if call.notify is not None:
        begun, link = permit.redeemed_at.isoformat(timespec="seconds"), build_link(policy.url, suspension)
        runs = f"{call.definition.name} runs under the same key since {begun}"
        call.notify(f"{runs}; this call waits for its result ({link})")

    def is_over(run: RunView) -> bool:
        return run.ended or run.suspension_id != suspension.id or holders.is_running(permit.holder) is False

    yield from poll(policy, lambda wait_s: find_run(suspension.run.id, min(wait_s, _CHECK_S)), is_over, call.wait_s)
    return (yield from send(policy, find_suspension(suspension.id)))


def describe_wait(policy: RetryPolicy, name: str, suspension: SuspensionView) -> str:
    """Return until when a call waits for a person, its item's address, and the freeze that holds it."""
    until = f" until {suspension.deadline_at:%Y-%m-%d %H:%M} UTC" if suspension.deadline_at else ""
    hold = suspension.items[0].freeze
    frozen = f"; {hold.describe(hold.at.isoformat(timespec='seconds'))}" if hold is not None else ""
    return f"{name} waits for a person{until} ({build_link(policy.url, suspension)}){frozen}"


def build_link(url: str, suspension: SuspensionView, item: ItemView | None = None) -> str:
    """Return the address of the page of an item, by default the first."""
    return f"{url}/items/{suspension.id}/{(item or suspension.items[0]).item_id}"


def _check_item(call: GatedCall, suspension: SuspensionView) -> ItemView:
    item = suspension.items[0]
    if suspension.erasure is not None:
        raise errors.Conflict(
            f"The contents of the {item.tool.name} call under the key {call.label!r} were erased, also its result. "
            "If it ran, only the system that it changes knows."
        )
    if suspension.status == "cancelled":
        error = (suspension.end.error if suspension.end else None) or ""
        message = f"{item.tool.name} must not run: its run was cancelled. {error}".strip()
        raise errors.Denied(message, verdict="cancelled", may_have_run=bool(item.permit or item.doubt))
    return item


def _check_outcome(call: GatedCall, suspension: SuspensionView, item: ItemView) -> None:
    """Raise `Denied` for a call that must not run, and `DeadlinePassed` for one that did not start in time."""
    outcome, name, answer = item.outcome, item.tool.name, _read_answer(item)
    if outcome is None or not outcome.may_run or (answer is not None and answer.choice == "fail"):
        by = outcome.by.id if outcome is not None else "nobody"
        why = f": {outcome.message}" if outcome is not None and outcome.message else "."
        facts: dict[str, str] = {"suspension_id": suspension.id, "key": call.label}
        facts |= {"verdict": outcome.verdict, "by_kind": outcome.by.kind} if outcome is not None else {}
        denied, word = errors.Denied, "denied"
        if outcome is not None and outcome.changes is not None:
            denied, word = errors.ChangesRequested, "returned"
            facts |= {"paths": " ".join(outcome.changes.paths), "item_id": item.item_id}
        raise denied(f"{name} was {word} by {by}{why}", by=by, may_have_run=item.doubt is not None, **facts)
    if suspension.end is not None and item.permit is None:
        raise _describe_lateness(call, suspension)


def _check_definition(call: GatedCall, suspension: SuspensionView, definition: str) -> None:
    """Raise `Withdrawn` for an item that another process asked: its approval is for another definition."""
    item = suspension.items[0]
    if item.tool.definition != definition and item.doubt is None:
        raise errors.Withdrawn(
            f"Another process asked about {item.tool.name} under the key {call.label!r} with a changed definition. "
            "Call it again to ask with this one.",
            suspension_id=suspension.id,
            key=call.label,
        )


def _describe_conflict(call: GatedCall, conflict: errors.IdempotencyConflict) -> errors.IdempotencyConflict:
    """Return the conflict with the key that the caller chose; the desk knows only its digest."""
    facts = {**conflict.facts, "idempotency_key": call.label}
    problem = f"The key {call.label!r} belongs to another {call.definition.name} call"
    problem += f": {facts['differs']} differs" if facts.get("differs") else ""
    if facts.get("may_have_run") is False:
        return errors.IdempotencyConflict(f"{problem}. Make the key of all arguments that tell calls apart.", **facts)
    return errors.IdempotencyConflict(
        f"{problem}. It may have run. Call it with its own arguments for its result.", **facts
    )


def _describe_lateness(call: GatedCall, suspension: SuspensionView) -> errors.DeadlinePassed:
    outcome = suspension.items[0].outcome
    until = f" before {outcome.start_by.isoformat(timespec='seconds')}" if outcome is not None else ""
    return errors.DeadlinePassed(
        f"{call.definition.name} was approved under the key {call.label!r} and did not start{until}. "
        "Call it with again=True to ask once more.",
        suspension_id=suspension.id,
        key=call.label,
    )


def find_report(item: ItemView) -> ReportView | None:
    """Return the result of an item's call, from its owner or from the person who settled its doubt."""
    if item.permit is not None:
        return item.permit.report
    answer = _read_answer(item)
    if answer is None or answer.choice not in ("reported", "skip"):
        return None
    skipped = {"success": True, "output": answer.result}
    given = skipped if answer.choice == "skip" else answer.result if isinstance(answer.result, dict) else {}
    return ReportView.model_validate({"output": None, "error": None, "at_ms": 0, **given})


def may_start(item: ItemView) -> bool:
    """Return whether the item's outcome lets its owner redeem a permit."""
    answer = _read_answer(item)
    is_open = item.outcome is not None and item.outcome.may_run and item.permit is None
    return is_open and (answer is None or answer.choice == "run_again")


def _read_answer(item: ItemView) -> "DoubtAnswer | None":
    if item.doubt is None or item.outcome is None:
        return None
    from sayso.core.transitions.permits import read_choice  # imported only for calls in doubt

    return read_choice(item.outcome.value)


def _describe_doubt(call: GatedCall, suspension: SuspensionView, item: ItemView) -> errors.InDoubt:
    idempotency_key = item.doubt.idempotency_key if item.doubt is not None else f"{suspension.id}:{item.item_id}"
    begun = item.permit.redeemed_at.isoformat(timespec="seconds") if item.permit is not None else "an unknown time"
    name = call.definition.name
    problem = f"{name} was started at {begun} under the key {call.label!r} and has not reported a result."
    look = f"the call may have run: look it up under the idempotency key {idempotency_key}"
    advice = f"Its time to report is over, and {look}."
    if suspension.end is None:
        advice = f"Another process may still be running it: call again in a moment. If that process died, {look}, "
        advice += "or call it with on_doubt='ask' to let a person decide."
    return errors.InDoubt(f"{problem} {advice}", suspension_id=suspension.id, key=call.label)


MAX_OUTPUT_BYTES = 100_000  # the largest result that is stored with the run

_LOG = logging.getLogger("sayso")


@dataclass
class Call:
    """A call that may run: use exactly `args`, and set `result`."""

    permit: RedeemedPermit
    result: Any = None

    @property
    def args(self) -> JsonObject:
        """The approved arguments, including a reviewer's edits."""
        return self.permit.args

    @property
    def idempotency_key(self) -> str:
        """The same key for every attempt of this call. Pass it to the systems that the call changes."""
        return self.permit.idempotency_key


def report(policy: RetryPolicy, call: Call, error: BaseException | None) -> Flow[None]:
    """Report how a call ended. A report that fails is logged: the call has run, so its result must not be lost."""
    success, output, note = (False, None, describe_error(error)) if error is not None else _fit(call.result)
    permit = call.permit
    request = report_outcome(permit.suspension_id, permit.item_id, permit.holder, success, output, note)
    try:
        yield from send(policy, request)
    except errors.SaysoError as failure:
        _LOG.warning("The outcome of %s could not be reported: %s", call.idempotency_key, failure.message)


def replay(name: str, earlier: EarlierResult) -> JsonValue:
    """Return the output of an earlier attempt. Raises `CallFailed` if it failed or its output was not stored."""
    report = earlier.report
    if not report.success:
        raise errors.CallFailed(
            f"{name} ran before under the key {earlier.label!r} and failed: {report.error}. It does not run again "
            "under this key. Check what it has done so far.",
            key=earlier.label,
        )
    if report.error is not None:
        raise errors.CallFailed(f"{name} ran before, but its result was not stored: {report.error}")
    return report.output


def _fit(returned: Any) -> tuple[bool, JsonValue, str | None]:
    if isinstance(returned, Iterator):  # reading it here would leave nothing for the caller
        return True, None, "The call ran; its result can be read only once, so it is not stored."
    try:
        output = plain_json(returned)
        size = len(to_json(output))
    except errors.InvalidJson as error:
        return True, None, error.message[:1000]
    if size > MAX_OUTPUT_BYTES:
        return True, None, f"The call ran; its result of {size} bytes is too large to store."
    return True, output, None
