"""The shown states of items and runs."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Outcome, Permit, Report, Verdict
from sayso.core.records.items import Binding, Doubt, Item, ItemDraft, ItemTool, freeze_item
from sayso.core.records.suspensions import ResumeSpec, RunEnd, RunRef, RunStatus, Status, SuspensionRecord
from sayso.core.transitions.states import ItemState, RunState, count_failed, find_item_state, find_run_state

BEN = Actor(id="ben", kind=ActorKind.HUMAN)
BEGUN = Permit(redeemed_at_ms=1, attempt=1, holder="worker:1")
WELL = BEGUN.model_copy(update={"ended_at_ms": 2, "success": True})
BADLY = BEGUN.model_copy(update={"ended_at_ms": 2, "success": False})
REPORTED = BEGUN.model_copy(update={"report": Report(success=False, error="502", at_ms=2)})
POLL = {"resume": ResumeSpec(mode="poll"), "end": RunEnd(status=RunStatus.FAILED)}


def item_with(verdict: Verdict | None = Verdict.APPROVED, permit: Permit | None = None, **fields: Any) -> Item:
    ask = ItemDraft(call_id="c", index=0, tool=ItemTool(name="pay", args={}, definition=""))
    item = freeze_item(ask, "i1", Binding("t", "r", 1, "s"), 0)
    value = fields.pop("value", None)
    outcome = Outcome(verdict=verdict, by=BEN, at_ms=0, start_by_ms=9, digest="d", value=value) if verdict else None
    return item.model_copy(update={"outcome": outcome, "permit": permit, **fields})


def record_with(item: Item, status: Status = Status.RESUMED, **fields: Any) -> SuspensionRecord:
    run = RunRef(id="r", agent="a", owner="o", thread_id="t")
    whole = {"id": "s", "tenant": "t", "created_at_ms": 0, "updated_at_ms": 0, "run": run, "items": (item,)}
    return SuspensionRecord(**{**whole, "status": status, **fields})


DOUBT = Doubt(begun_at_ms=1, holder="w", attempt=1, idempotency_key="k")


@pytest.mark.parametrize(
    ("item", "status", "fields", "state"),
    [
        (item_with(None), Status.PENDING, {}, "open"),
        (item_with(None), Status.CANCELLED, {}, "cancelled"),
        (item_with(), Status.DECIDED, {}, "approved"),
        (item_with(permit=BEGUN), Status.RESUMING, {}, "approved"),
        (item_with(permit=WELL), Status.RESUMED, {}, "approved"),
        (item_with(Verdict.DENIED), Status.RESUMED, {}, "denied"),
        (item_with(Verdict.FAILED), Status.RESUMED, {}, "failed"),
        (item_with(permit=BADLY), Status.RESUMED, {}, "failed"),
        (item_with(permit=BADLY), Status.CANCELLED, {}, "failed"),
        (item_with(permit=REPORTED), Status.RESUMING, {}, "failed"),
        (item_with(permit=BEGUN), Status.RESUMED, {}, "in_doubt"),
        (item_with(permit=BEGUN), Status.CANCELLED, {}, "in_doubt"),
        (item_with(), Status.CANCELLED, {}, "cancelled"),
        (item_with(), Status.FAILED, {}, "failed"),
        (item_with(), Status.RESUMED, POLL, "not_run"),
        (item_with(Verdict.ANSWERED, doubt=DOUBT, value={"choice": "skip"}), Status.RESUMED, POLL, "answered"),
        (item_with(Verdict.ANSWERED, doubt=DOUBT, value={"choice": "fail"}), Status.RESUMED, {}, "failed"),
        (
            item_with(Verdict.ANSWERED, doubt=DOUBT, value={"choice": "reported", "result": {"success": False}}),
            Status.RESUMED,
            {},
            "failed",
        ),
    ],
)
def test_find_item_state(item: Item, status: Status, fields: dict[str, Any], state: str) -> None:
    assert find_item_state(record_with(item, status, **fields), item) == state


def test_a_run_that_ended_over_a_failed_call_is_not_completed() -> None:
    assert count_failed(record_with(item_with(permit=BADLY), failed_calls=2)) == 3
    assert find_run_state(RunStatus.COMPLETED, 1) is RunState.CALL_FAILED
    assert find_run_state(RunStatus.DEGRADED, 1) is RunState.CALL_FAILED
    assert find_run_state(RunStatus.COMPLETED, 0) is RunState.COMPLETED
    assert find_run_state(RunStatus.FAILED, 1) is RunState.FAILED
    assert find_run_state(RunStatus.RUNNING, 1) is RunState.RUNNING


def test_every_status_of_a_run_is_a_state() -> None:
    assert {find_run_state(status, 0) for status in RunStatus} == set(RunState) - {RunState.CALL_FAILED}
    assert {one.value for one in Verdict} <= {one.value for one in ItemState}
