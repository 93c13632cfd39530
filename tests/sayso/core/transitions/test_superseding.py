"""Transitions of calls that are asked again under their key."""

from typing import Any

import pytest

from sayso.core.records.decisions import Erasure, Report
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import ResumeSpec, RunRef, Status, SuspensionRecord, Who
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.transitions.client_execution import client_redeem, conclude, lapse
from sayso.core.transitions.deciding import cancel, decide, suspend
from sayso.core.transitions.due import tick
from sayso.core.transitions.superseding import find_reason, is_superseded, list_changes, supersede
from sayso.errors import IdempotencyConflict, IllegalTransition
from tests.sayso.samples import T0, ask, draft, pending, person, types_of, word

POLL = ResumeSpec(mode="poll", resumer="poll")
REFUND = ToolDefinition(name="refund", description="Pay.")
EURO: dict[str, Any] = {"type": "string", "default": "EUR"}


def asked(*drafts: ItemDraft, **run: Any) -> SuspensionRecord:
    """Return a client's suspension, asked with these fields of its run."""
    named = RunRef(id="run_1", agent="support", owner="bot", **{"thread_id": "t1", "request_id": "r1", **run})
    return suspend(draft(resume=POLL, run=named), drafts or (ask(),), T0).record


def compare(record: SuspensionRecord, *calls: tuple[ToolCall, ToolDefinition], **run: Any) -> tuple[str, ...]:
    now = asked(**{"request_id": "r2", **run})
    return list_changes(record, now, calls, {REFUND.digest: REFUND, "d" * 64: REFUND}, "k")


def refund(**args: Any) -> tuple[ToolCall, ToolDefinition]:
    return ToolCall(call_id="c", index=0, name="refund", args={"order": "A-0", "amount": 250.5, **args}), REFUND


def with_properties(**properties: Any) -> ToolDefinition:
    return REFUND.model_copy(update={"parameters": {"type": "object", "properties": properties}})


def test_list_changes_names_nothing_for_the_same_request() -> None:
    assert compare(asked(), refund(amount=9), request_id="r1") == ()


@pytest.mark.parametrize(
    ("run", "changes"),
    [
        ({"title": "Now"}, ("title",)),
        ({"tags": ("a",), "claimed": {"a": 1}}, ("context", "tags")),
        ({"thread_id": "t2"}, ("thread_id",)),
        ({}, ("step",)),
    ],
)
def test_list_changes_names_what_differs(run: dict[str, Any], changes: tuple[str, ...]) -> None:
    record = asked()
    assert compare(record, (refund()[0], REFUND), **run) == ("definition", *changes) or changes == ("step",)
    same = record.with_item(record.items[0].model_copy(update={"tool": _tool(record, REFUND.digest)}))
    assert compare(same, refund(), **run) == changes


def _tool(record: SuspensionRecord, definition: str) -> Any:
    return record.items[0].tool.model_copy(update={"definition": definition})


@pytest.mark.parametrize(
    ("call", "differs"),
    [
        ((ToolCall(call_id="c", index=0, name="pay", args={}), REFUND), "tool"),
        (refund(amount=9), "args.amount"),
        (refund(currency="EUR"), "args.currency"),
        ((refund(currency="USD")[0], with_properties(currency=EURO)), "args.currency"),
        ((refund(currency="EUR")[0], with_properties(currency={"type": "string"})), "args.currency"),
    ],
)
def test_list_changes_refuses_another_call(call: tuple[ToolCall, ToolDefinition], differs: str) -> None:
    with pytest.raises(IdempotencyConflict, match=f"belongs to another call: {differs} differs") as refused:
        compare(asked(), call)
    assert refused.value.facts["may_have_run"] is False


def test_list_changes_refuses_another_person_or_number_of_calls() -> None:
    who = Who(person="ada@example.com", issuer="https://idp.example")
    with pytest.raises(IdempotencyConflict, match="on_behalf_of differs"):
        compare(asked(), refund(), who=who)
    with pytest.raises(IdempotencyConflict, match="calls differs"):
        compare(asked(), refund(), refund())
    assert compare(asked(who=Who(owner="ada")), refund(), who=Who()) != ()


def test_list_changes_accepts_the_default_of_a_new_or_removed_parameter() -> None:
    new = with_properties(currency=EURO)
    assert compare(asked(), (refund(currency="EUR")[0], new)) == ("parameters",)
    tool = ask().tool.model_copy(update={"args": {**ask().tool.args, "currency": "EUR"}, "definition": new.digest})
    record = asked(ask().model_copy(update={"tool": tool}))
    with pytest.raises(IdempotencyConflict, match=r"args\.currency"):
        compare(record, refund())
    now = asked(request_id="r2")
    assert list_changes(record, now, [refund()], {new.digest: new}, "k") == ("parameters",)


def test_default_that_changed_is_another_call() -> None:
    """Both calls leave the parameter out, and each gets the default of its own version."""
    euro, dollar = with_properties(currency=EURO), with_properties(currency={**EURO, "default": "USD"})
    tool = ask().tool.model_copy(update={"args": {**ask().tool.args, "currency": "EUR"}, "definition": euro.digest})
    record = asked(ask().model_copy(update={"tool": tool}))
    with pytest.raises(IdempotencyConflict, match=r"args\.currency"):
        list_changes(record, asked(request_id="r2"), [(refund(currency="USD")[0], dollar)], {euro.digest: euro}, "k")


def test_required_parameter_of_a_call_has_no_default() -> None:
    new = with_properties(currency=EURO)
    required = new.model_copy(update={"parameters": {**new.parameters, "required": ["currency"]}})
    with pytest.raises(IdempotencyConflict, match=r"args\.currency"):
        compare(asked(), (refund(currency="EUR")[0], required))


def test_call_without_decision_or_start_in_time_is_asked_again() -> None:
    undecided = tick(asked(), (), T0 + 300_000).record
    assert undecided.items[0].outcome is not None
    again = find_reason(undecided, (), again=True, now_ms=T0 + 300_000)
    assert again == "Asked again, because nobody decided the earlier item in time."
    record = asked()
    approved = decide(record, word(record), T0).record
    start_by_ms = approved.items[0].start_by_ms
    assert find_reason(approved, (), again=True, now_ms=start_by_ms - 1) is None
    late = find_reason(approved, (), again=True, now_ms=start_by_ms)
    assert late == "Asked again, because the approved call did not start in time."


def test_erased_or_cancelled_request_stands() -> None:
    record = asked()
    erasure = Erasure(by=person("root"), at_ms=T0, reason="asked by the customer", seq=9)
    erased = record.model_copy(update={"erasure": erasure})
    assert find_reason(erased, ("title",), again=False, now_ms=T0) is None
    assert "title" in compare(erased, refund(amount=9), title="Now"), "nobody can compare erased arguments"
    cancelled = cancel(decide(record, word(record), T0).record, person("root"), None, T0).record
    assert find_reason(cancelled, (), again=True, now_ms=T0) is None


def test_batch_with_a_started_or_denied_call_stands() -> None:
    both = asked(ask(0), ask(1))
    assert find_reason(both, ("title",), again=False, now_ms=T0) is not None
    denied = decide(both, word(both, "deny"), T0).record
    assert find_reason(denied, ("title",), again=True, now_ms=T0) is None
    approved = both
    for item_id in ("i1", "i2"):
        approved = decide(approved, word(approved, item_id=item_id), T0).record
    assert find_reason(approved, ("title",), again=False, now_ms=T0) is not None
    started = client_redeem(approved, "i1", "try", T0).record
    assert find_reason(started, ("title",), again=True, now_ms=T0 + 10**9) is None
    reported = conclude(started, "i1", "try", Report(success=True, at_ms=0), T0).record
    assert find_reason(reported, ("title",), again=True, now_ms=T0 + 10**9) is None
    with pytest.raises(IdempotencyConflict, match="may have run") as refused:
        compare(started, refund(amount=1), refund())
    assert refused.value.facts["may_have_run"] is True


def test_supersede_withdraws_the_item_and_links_the_next() -> None:
    record = asked()
    following = draft(id="sus_2", resume=POLL, run=record.run)
    change = supersede(record, following, (ask(),), (), "Asked again.", T0 + 5)
    assert change.following is not None
    assert types_of(change) == ["asked_again", "run_paused"]
    assert (change.record.status, change.record.following_id, change.record.due_at_ms) == (
        Status.CANCELLED,
        "sus_2",
        None,
    )
    assert (change.following.status, change.following.previous_id) == (Status.PENDING, "sus_1")
    assert change.following.items[0].prompt.reason == "Asked again."
    assert change.following.items[0].digest != record.items[0].digest
    assert is_superseded(change.record)
    assert not is_superseded(record)


def test_supersede_keeps_the_end_of_a_run_that_has_ended() -> None:
    record = asked()
    approved = decide(record, word(record), T0).record
    ended = lapse(approved, approved.items[0].start_by_ms).record
    assert ended.end is not None
    following = draft(id="sus_2", resume=POLL, run=ended.run)
    before = supersede(ended, following, (ask(),), (), "Asked again.", ended.updated_at_ms + 1).record
    assert (before.status, before.end) == (ended.status, ended.end)


def test_supersede_refuses_a_call_that_has_started() -> None:
    record = asked()
    started = client_redeem(decide(record, word(record), T0).record, "i1", "try", T0).record
    with pytest.raises(IllegalTransition, match="Cannot supersede"):
        supersede(started, draft(id="sus_2", resume=POLL), (ask(),), (), "Asked again.", T0)
    assert find_reason(pending(), (), again=True, now_ms=T0) is None
