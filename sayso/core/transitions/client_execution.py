"""Transitions of a run whose client runs the approved calls itself (mode `poll`).

A permit is redeemed before the call starts, under a key that the client chooses. The same key gets the same answer
again, and any other is refused. Unused permits and missing reports lapse, and the run then ends.
"""

from hashlib import sha256

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Permit, Report, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Doubt, Item
from sayso.core.records.judgements import Charge, place_charges
from sayso.core.records.suspensions import Change, Lease, RunEnd, RunRef, RunStatus, Status, SuspensionRecord
from sayso.core.records.terms import REPORT_WITHIN_S
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.core.transitions import permits
from sayso.core.transitions.closing import END_EVENTS, end_suspension, follow, note_resumed
from sayso.core.transitions.deciding import find_item, suspend
from sayso.core.transitions.legal import check_step
from sayso.errors import AlreadyRedeemed, Conflict, IllegalTransition, StaleAttempt

_STATUSES = {"continue": RunStatus.COMPLETED, "degrade": RunStatus.DEGRADED, "fail": RunStatus.FAILED}


def client_redeem(
    record: SuspensionRecord, item_id: str, key: str, now_ms: int, report_within_s: int = REPORT_WITHIN_S
) -> Change:
    """Redeem the permit of a call for `key`, once; raises `AlreadyRedeemed` for another key, or as `redeem_permit`."""
    _check_polled(record)
    item = find_item(record, item_id)
    before = item.permit
    if before is not None and before.holder == key:
        return Change(record)
    if before is not None and (before.report is not None or not item.tool.idempotent):
        raise AlreadyRedeemed(
            f"The permit for {item.tool.name} was redeemed at {iso_utc(before.redeemed_at_ms)} by {before.holder}. "
            "The call may have run. Do not start it again.",
            consumed_at_ms=before.redeemed_at_ms,
            reported=before.report is not None,
        )
    check_step(record, "client_redeem")
    if item.permit is None and item.outcome is not None and item.outcome.may_run and not permits.may_start(item):
        raise IllegalTransition(f"The answer about item {item.item_id} does not allow another run of its call.")
    if record.stops_calls:
        raise IllegalTransition("A call of this suspension was denied, so no other call may run.")
    attempt = before.attempt + 1 if before is not None else 1
    report_by_ms = now_ms + report_within_s * 1000
    permit = Permit(redeemed_at_ms=now_ms, attempt=attempt, holder=key, report_by_ms=report_by_ms)
    redeemed = _put(record, permits.redeem_permit(record, item, permit, now_ms), now_ms)
    lease = Lease(holder=key, attempt=record.lease.attempt + 1 if record.lease else 1, until_ms=report_by_ms)
    receipt = record.receipt.model_copy(update={"leased_at_ms": record.receipt.leased_at_ms or now_ms})
    redeemed = redeemed.model_copy(update={"status": Status.RESUMING, "lease": lease, "receipt": receipt})
    digest = item.outcome.digest if item.outcome else ""
    data = {"item_id": item_id, "call_id": item.call_id, "digest": digest, "attempt": attempt, "holder": key}
    return note_resumed(Change(redeemed, (Event(EventType.PERMIT_REDEEMED, data),)), now_ms)


def charge_item(redeemed: Change, item_id: str, charges: tuple[Charge, ...], now_ms: int) -> Change:
    """Return the change with charges on the item whose permit it redeems."""
    item = find_item(redeemed.record, item_id)
    if not charges:
        return redeemed
    record = redeemed.record.with_item(item.model_copy(update={"charges": place_charges(charges, now_ms)}))
    return redeemed._replace(record=record)


def conclude(record: SuspensionRecord, item_id: str, key: str | None, report: Report, now_ms: int) -> Change:
    """Record the result of a redeemed call. The last report ends the run; the same report again changes nothing.

    Raises `StaleAttempt` unless `key` redeemed the permit (None matches any holder), `Conflict` for a different report,
    and `IllegalTransition`.
    """
    _check_polled(record)
    item = find_item(record, item_id)
    permit = item.permit
    if permit is None:
        raise IllegalTransition(f"The permit of item {item_id} is not redeemed. Redeem it before the call starts.")
    if key is not None and key != permit.holder:
        problem = f"The permit of item {item_id} was redeemed by {permit.holder}, not with this key."
        raise StaleAttempt(problem, holder=permit.holder)
    if permit.report is not None:
        if permit.report.model_copy(update={"at_ms": 0}) != report.model_copy(update={"at_ms": 0}):
            raise Conflict(f"A different result of item {item_id} was reported at {iso_utc(permit.report.at_ms)}.")
        return Change(record)
    check_step(record, "conclude")
    reported = report.model_copy(update={"at_ms": now_ms})
    concluded = _put(record, item.model_copy(update={"permit": permit.model_copy(update={"report": reported})}), now_ms)
    data: JsonObject = {"item_id": item_id, "index": item.index, "tool_name": item.tool.name}
    data |= {"success": reported.success, "output": reported.output, "error": reported.error}
    return _end_if_over(concluded, (Event(EventType.OUTCOME_REPORTED, data),), now_ms)


def conclude_lost(record: SuspensionRecord, item_id: str, key: str | None, reported: Report, now_ms: int) -> Change:
    """Record the result of a call whose redeemed permit the store lost, as its client reports it."""
    check_step(record, "recover_start")
    item = find_item(record, item_id)
    permit = Permit(redeemed_at_ms=now_ms, attempt=1, holder=key or record.run.owner, report_by_ms=now_ms)
    lease = Lease(holder=permit.holder, attempt=1, until_ms=now_ms)
    update = {"status": Status.RESUMING, "lease": record.lease or lease}
    redeemed = record.with_item(item.model_copy(update={"permit": permit})).model_copy(update=update)
    concluded = conclude(redeemed, item_id, key, reported, now_ms)
    event = permits.describe_start(item_id, item.call_id, permit.holder, permit.attempt)
    return concluded._replace(events=(event, *concluded.events))


def lapse(record: SuspensionRecord, now_ms: int) -> Change:
    """Lapse the permits that were not used, or not reported, in time; before that change nothing."""
    check_step(record, "lapse")
    _check_polled(record)
    if record.due_at_ms is None or now_ms < record.due_at_ms:
        return Change(record)
    if _moments_ahead(record, now_ms):
        return Change(_postpone_due(record, now_ms))
    lapsed: list[Event] = []
    for item in record.items:
        unused = _waits_for_start(record, item)
        if unused or (item.permit is not None and item.permit.report is None):
            data: JsonObject = {"item_id": item.item_id, "tool_name": item.tool.name, "started": not unused}
            lapsed.append(Event(EventType.PERMIT_LAPSED, data))
    return _end_if_over(record, tuple(lapsed), now_ms)


def mark_in_doubt(record: SuspensionRecord, item_id: str, following: SuspensionRecord, now_ms: int) -> Change:
    """Ask in the next suspension about the one call without a report; raises `IllegalTransition` for others."""
    _check_polled(record)
    check_step(record, "mark_in_doubt")
    item = find_item(record, item_id)
    permit = item.permit
    if permit is None or permit.report is not None:
        raise IllegalTransition(f"Item {item_id} is not in doubt: its call was not started, or its result is known.")
    others = [other for other in record.items if other.item_id != item_id]
    if any(permits.may_start(other) or (other.permit is not None and other.permit.report is None) for other in others):
        raise IllegalTransition("Other calls of this suspension are unfinished. Run and report them first.")
    doubt = Doubt(
        begun_at_ms=permit.redeemed_at_ms,
        holder=permit.holder,
        attempt=permit.attempt,
        idempotency_key=key_of(record, item),
        charges=item.charges,
    )
    call = ToolCall(call_id=item.call_id, index=item.index, name=item.tool.name, args=permits.approved_args(item))
    drafts = (permits.put_in_doubt(call, item.tool.definition, doubt, item.terms.secrets, by_client=True),)
    suspended = suspend(following.model_copy(update=follow(record)), drafts, now_ms)
    ended = end_suspension(record, now_ms, {"following_id": following.id, "updated_at_ms": now_ms})
    return Change(ended, suspended.events, following=suspended.record)


def name_run(run: RunRef, key: str, request_id: str) -> RunRef:
    """Return the run with an id derived from its owner's key; `request_id` identifies the request."""
    name = sha256(f"{run.owner} {key}".encode()).hexdigest()[:32]
    thread_id = f"run_{name}" if run.thread_id == run.id else run.thread_id
    return run.model_copy(update={"id": f"run_{name}", "thread_id": thread_id, "request_id": request_id})


def key_of(record: SuspensionRecord, item: Item) -> str:
    """Return the idempotency key of an item's call; it stays the same when the call runs again."""
    return item.doubt.idempotency_key if item.doubt is not None else f"{record.id}:{item.item_id}"


def _check_polled(record: SuspensionRecord) -> None:
    if record.resume.mode != "poll":
        raise IllegalTransition("Workers run the calls of this suspension. A client runs only those in mode 'poll'.")


def _put(record: SuspensionRecord, item: Item, now_ms: int) -> SuspensionRecord:
    return _postpone_due(record.with_item(item), now_ms)


def _postpone_due(record: SuspensionRecord, now_ms: int) -> SuspensionRecord:
    due_at_ms = min(_moments_ahead(record, now_ms), default=permits.next_lapse(record, now_ms))
    return record.model_copy(update={"updated_at_ms": now_ms, "due_at_ms": due_at_ms})


def _moments_ahead(record: SuspensionRecord, now_ms: int) -> list[int]:
    moments = [item.start_by_ms for item in record.items if _waits_for_start(record, item)]
    moments += [item.permit.report_by_ms for item in record.items if item.permit and not item.permit.report]
    return [at_ms for at_ms in moments if at_ms > now_ms]


def _waits_for_start(record: SuspensionRecord, item: Item) -> bool:
    return permits.may_start(item) and not record.stops_calls


def _end_if_over(record: SuspensionRecord, events: tuple[Event, ...], now_ms: int) -> Change:
    if _moments_ahead(record, now_ms):
        return Change(record, events)
    results = [_result_of(record, item) for item in record.items]
    errors = [result.error for result in results if result.error is not None]
    result: JsonValue = {"calls": [result.model_dump(mode="json") for result in results]}
    status = max((_status_of(record, item) for item in record.items), key=list(END_EVENTS).index)
    end = RunEnd(status=status, result=result, error=None if status is RunStatus.COMPLETED else "; ".join(errors))
    ended = end_suspension(record, now_ms, {"end": end, "updated_at_ms": now_ms})
    return Change(ended, (*events, Event(END_EVENTS[end.status], {"result": end.result, "error": end.error})))


def _status_of(record: SuspensionRecord, item: Item) -> RunStatus:
    outcome, permit = item.outcome, item.permit
    if permit is not None:
        return RunStatus.COMPLETED if permit.report is not None else RunStatus.DEGRADED
    if outcome is not None and outcome.verdict is Verdict.DENIED:
        return _STATUSES[record.on_deny] if outcome.refuses else RunStatus.COMPLETED
    return RunStatus.COMPLETED if _answer_of(item) is not None else RunStatus.FAILED


def _answer_of(item: Item) -> Report | None:
    if item.drill is not None:
        return Report(success=False, error="This was a drill: its call never existed.", at_ms=0)
    if item.mandate is not None and item.outcome is not None and item.outcome.may_run:
        return Report(success=True, output="The plan was approved.", at_ms=0)
    if item.doubt is None or item.outcome is None:
        return None
    answer = permits.read_choice(item.outcome.value)
    if answer.choice is permits.Choice.REPORTED:
        result = ToolResult.model_validate(answer.result)
        return Report(success=result.success, output=result.output, error=result.error, at_ms=item.outcome.at_ms)
    return Report(success=True, output=answer.result, at_ms=0) if answer.choice is permits.Choice.SKIP else None


def _result_of(record: SuspensionRecord, item: Item) -> ToolResult:
    report = item.permit.report if item.permit is not None else _answer_of(item)
    if report is None:
        report = Report(success=False, error=_describe_failure(record, item), at_ms=0)
    return ToolResult(
        call_id=item.call_id,
        tool_name=item.tool.name,
        success=report.success,
        output=report.output,
        error=report.error if not report.success else None,
    )


def _describe_failure(record: SuspensionRecord, item: Item) -> str:
    name, outcome, permit = item.tool.name, item.outcome, item.permit
    if permit is not None:
        return f"{name} was started at {iso_utc(permit.redeemed_at_ms)}, and its client reported no result."
    if outcome is not None and not outcome.may_run:
        return f"{name} was {outcome.verdict} by {outcome.by.id}" + (f": {outcome.message}" if outcome.message else ".")
    if item.doubt is not None and not permits.may_start(item):
        return f"{name} may have run, and the answer was to fail the run."
    if not _waits_for_start(record, item):
        return f"{name} was skipped because another call of its suspension was denied."
    return f"{name} was approved, but its client did not start it before {iso_utc(item.start_by_ms)}. Ask again."
