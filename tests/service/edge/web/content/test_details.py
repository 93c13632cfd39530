from typing import Any

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Verdict
from sayso.core.records.events import TrailEntry
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Receipt, Status
from service.edge.web.content.details import compare_args, find_model_text, find_result, find_why
from service.edge.web.content.stages import list_stages
from tests.sayso.core.sentences.samples import make_item, make_outcome, make_record


def trail(*events: tuple[str, dict[str, Any]]) -> list[TrailEntry]:
    return [
        TrailEntry(seq=seq, at_ms=seq, type=type_, data=data, hash="h")
        for seq, (type_, data) in enumerate(events, start=1)
    ]


def judged(index: int, **data: Any) -> tuple[str, dict[str, Any]]:
    return "policy_decision", {"index": index, "tool_name": "refund_payment", **data}


def paused(suspension_id: str) -> tuple[str, dict[str, Any]]:
    return "run_paused", {"payload": {"suspension_id": suspension_id}}


def completed(index: int, **data: Any) -> tuple[str, dict[str, Any]]:
    return "tool_completed", {"index": index, "tool_name": "refund_payment", "success": True, "output": index, **data}


def decided(verdict: Verdict = Verdict.APPROVED) -> Item:
    return make_item().model_copy(update={"outcome": make_outcome(verdict)})


def test_find_why_uses_the_rule_decision_of_the_call() -> None:
    events = trail(
        judged(0, matched_rules=["old"]),
        paused("sus_0"),
        judged(0, matched_rules=["refunds", "all"], error="args.amount is no number"),
        judged(1, matched_rules=["other"]),
        paused("sus_1"),
        judged(0, matched_rules=["later"]),
    )
    why = find_why(make_item(), "sus_1", events)
    assert why.matched == ("refunds", "all")
    assert why.error == "args.amount is no number"


def test_find_model_text_uses_the_turn_of_the_call() -> None:
    said = [("llm_completed", {"text": text}) for text in ("first", "second", "third")]
    events = trail(said[0], paused("sus_0"), said[1], paused("sus_1"), said[2])
    assert find_model_text("sus_1", events) == "second"
    assert find_model_text("sus_1", []) == ""


def test_find_result_matches_call_and_suspension() -> None:
    events = trail(
        completed(0), paused("sus_1"), completed(1), completed(0, latency_ms=3.5), paused("sus_2"), completed(0)
    )
    result = find_result(make_item(), "sus_1", events)
    assert result is not None
    assert (result.at_ms, result.latency, result.success) == (4, " in 4 ms", True)
    assert find_result(make_item(), "sus_1", trail(paused("sus_1"), paused("sus_2"), completed(0))) is None


def test_find_result_falls_back_to_the_call_id() -> None:
    events = trail(paused("sus_1"), ("tool_completed", {"tool_call_id": "call_0", "success": False, "error": "no"}))
    result = find_result(make_item(), "sus_1", events)
    assert result is not None
    assert result.error == "no"


def texts(item: Item, **fields: Any) -> list[tuple[str, int | None]]:
    record = make_record(item, **fields)
    result = find_result(item, "sus_1", trail(paused("sus_1")))
    return [(stage.text, stage.at_ms) for stage in list_stages(record, item, result)]


def test_list_stages_includes_future_stages() -> None:
    assert texts(make_item()) == []
    assert texts(decided(), status=Status.DECIDED) == [
        ("Approved", 1_000_000),
        ("Handed over", None),
        ("A worker has it", None),
        ("The run resumed", None),
        ("refund_payment runs", None),
    ]
    receipt = Receipt(enqueued_at_ms=4, leased_at_ms=5, resumed_at_ms=6, settled_at_ms=7, redrives=2)
    assert texts(decided(Verdict.DENIED), status=Status.RESUMING, receipt=receipt)[1:] == [
        ("Handed over, again 2 times", 4),
        ("A worker has it", 5),
        ("The run resumed", 6),
        ("Done", 7),
    ]


def test_list_stages_of_a_run_that_waits_for_other_items() -> None:
    other = make_item().model_copy(update={"item_id": "i2"})
    assert texts(decided(), items=(decided(), other))[-1] == ("The run waits for another item", None)


def test_list_stages_of_a_cancelled_run_and_a_failed_attempt() -> None:
    assert texts(decided(), status=Status.CANCELLED)[-1][0] == "The run was cancelled"
    shown = texts(decided(), status=Status.RESUMING, receipt=Receipt(error="no such agent"))
    assert ("Decided, not yet resumed: no such agent", None) in shown


def test_compare_args_compares_every_value() -> None:
    rows = compare_args({"a": 1, "b": {"c": "x"}, "d": 1}, {"a": 1, "b": {"c": "y"}, "e": [2]})
    assert [(row.path, row.before, row.after, row.state) for row in rows] == [
        ("a", "1", "1", "same"),
        ("b.c", "x", "y", "changed"),
        ("d", "1", "", "removed"),
        ("e[0]", "", "2", "added"),
    ]
    assert compare_args({"a": 1}, {})[0].state == "removed"


def test_compare_args_names_the_currency_of_each_amount() -> None:
    before: JsonObject = {"pay": {"amount": 4890, "currency": "EUR"}, "count": 2}
    after: JsonObject = {"pay": {"amount": 7, "currency": "USD"}}
    row = compare_args(before, after)[0]
    assert row.was is not None
    assert row.now is not None
    assert (row.was.currency, row.now.currency) == ("EUR", "USD")
    cents = compare_args(before, after, minor=True)
    assert {leaf.currency for one in cents for leaf in (one.was, one.now) if leaf is not None} == {""}
