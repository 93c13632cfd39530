"""The invariants hold however two reviewers, two workers, the clock and three crashes interleave around one run.

The second half breaks transitions, to prove that the explorer finds it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sayso.records.items import ItemDraft, ItemKind
from sayso.records.suspensions import Change, Status, SuspensionRecord
from sayso.transitions import deciding as pauses
from sayso.transitions import execution
from sayso.transitions import timing as deadlines
from sayso.transitions.execution import Fence
from sayso.transitions.in_doubt import Choice
from sayso.transitions.table import LEGAL
from tests.proofs.explorer import Explorer
from tests.proofs.explorer_states import Breach
from tests.proofs.scenarios import Scenario, Verbs, Word, answer
from tests.sayso.samples import ask

APPROVE, DENY = Word(1), Word(1, action="deny")
AGAINST = ((APPROVE,), (DENY,))
"""One reviewer approves what the other denies."""

REFUND = ask(timeout_s=6, start_by_s=6)
ALWAYS = {"suspend", "lease", "redrive", "settle"}
ASKED = {*ALWAYS, "suspend_again", "decide", "expire"}
DRIVEN = {*ASKED, "redeem", "checkpoint", "renew"}

OWNERS = {"client_redeem", "conclude", "lapse", "mark_in_doubt"}
"""The steps of a client; `tests/sayso/transitions/test_client_execution.py` covers them."""


def idempotent(one: ItemDraft) -> ItemDraft:
    return one.model_copy(update={"tool": one.tool.model_copy(update={"idempotent": True})})


SCENARIOS: tuple[tuple[Scenario, set[str]], ...] = (
    (Scenario("one reviewer approves what the other denies", (REFUND,), AGAINST, tries=0, copies=2), DRIVEN),
    (
        Scenario(
            "terms that do not end together",
            (ask(timeout_s=7, start_by_s=8),),
            AGAINST,
            lease_ms=4_000,
            tries=3,
            crashes=2,
        ),
        DRIVEN,
    ),
    (Scenario("a call that may run twice", (idempotent(REFUND),), AGAINST, tries=2, copies=2), DRIVEN),
    (
        Scenario(
            "a call in doubt is run again, and is in doubt again",
            (REFUND,),
            ((APPROVE, answer(2, Choice.RUN_AGAIN), answer(3, Choice.SKIP)), (answer(2, Choice.SKIP),)),
            pauses=4,
        ),
        {*DRIVEN, "report"},
    ),
    (
        Scenario(
            "a call that needed no leave is in doubt",
            (),
            ((answer(1, Choice.RUN_AGAIN),), (answer(1, Choice.FAIL),)),
            calls=True,
            pauses=3,
        ),
        {*DRIVEN, "report"},
    ),
    (
        Scenario(
            "two items, one of which takes two people",
            (
                ask(0, timeout_s=6, start_by_s=9, quorum={"approve": 2, "deny": 2}),
                ask(1, kind=ItemKind.INPUT, timeout_s=3, start_by_s=9),
            ),
            ((APPROVE, Word(1, "i2", "value", value=7)), (Word(1, "i2", "deny"), APPROVE)),
        ),
        DRIVEN,
    ),
    (
        Scenario(
            "reminded, extended, escalated",
            (
                ask(
                    timeout_s=6,
                    start_by_s=6,
                    remind_after_s=(3,),
                    extend_by_s=3,
                    reviewers=("reviewer 1",),
                    escalate=({"after_s": 9, "reviewers": ("reviewer 2",)},),
                    fallback={"action": "escalate"},
                ),
            ),
            ((Word(1, action="extend"),), (APPROVE,)),
        ),
        {*DRIVEN, "extend", "remind", "escalate"},
    ),
    (
        Scenario(
            "nobody is asked in vain",
            (ask(timeout_s=3, start_by_s=3, unattended_approval=True, fallback={"action": "approve"}),),
            ((DENY,), (Word(1, action="see"),)),
        ),
        {*DRIVEN, "see"},
    ),
    (
        Scenario("frozen and lifted at any time", (REFUND,), AGAINST, deeds=("hold", "shift_deadlines"), crashes=2),
        {*DRIVEN, "hold", "shift_deadlines"},
    ),
    (
        Scenario(
            "asked again, for another rule asks about an edit", (REFUND,), ((Word(1, action="again"),), (APPROVE,))
        ),
        {*DRIVEN, "ask_again"},
    ),
    (Scenario("cancelled at any time", (REFUND,), AGAINST, deeds=("cancel",)), {*DRIVEN, "cancel"}),
    (
        Scenario("a run that nobody can drive", deeds=("revive", "cancel"), broken=True, tries=0),
        {"suspend", "lease", "redrive", "postpone", "give_up", "revive", "cancel"},
    ),
    (
        Scenario("two workers of one name", (idempotent(REFUND),), AGAINST, workers=("w1", "w1")),
        DRIVEN,
    ),
    (
        Scenario(
            "a quick call is noted while a slow one runs",
            (ask(0, timeout_s=6, start_by_s=9), ask(1, timeout_s=6, start_by_s=9)),
            ((APPROVE, Word(1, "i2")),),
            notes=True,
            crashes=2,
        ),
        {*DRIVEN, "note_results"},
    ),
    (
        Scenario(
            "a fallback approves what somebody has seen",
            (ask(timeout_s=6, start_by_s=6, unattended_approval=True, fallback={"action": "approve"}),),
            ((Word(1, action="see"),), (DENY,)),
        ),
        {*DRIVEN, "see"},
    ),
    (
        Scenario("a framework that starts its call at the last try", (REFUND,), AGAINST, unused=True),
        {*DRIVEN, "return_permits", "postpone"},
    ),
    (Scenario("workers give runs back", (REFUND,), AGAINST, releases=True), {*DRIVEN, "release"}),
    (
        Scenario(
            "a run that pauses twice",
            (REFUND,),
            ((APPROVE, Word(2)), (DENY, Word(2, action="deny"))),
            nested=True,
            pauses=3,
        ),
        DRIVEN,
    ),
)


@pytest.mark.parametrize(("scenario", "verbs"), SCENARIOS, ids=lambda one: getattr(one, "name", ""))
def test_invariants_hold_in_every_interleaving(scenario: Scenario, verbs: set[str]) -> None:
    explored = Explorer(scenario).explore()
    print(f"{scenario.name}: {explored.states:,} states, {explored.moves:,} moves, {explored.stands} ways to stand")
    assert explored.rows >= verbs, "the scenario no longer reaches what it is about"
    assert explored.states > 1_000


def test_the_scenarios_reach_every_row_of_the_table() -> None:
    assert set().union(*(verbs for _, verbs in SCENARIOS)) == set(LEGAL) - OWNERS


# What the explorer is there to find


def leases_what_is_leased(record: SuspensionRecord, holder: str, lease_ms: int, now_ms: int) -> Change:
    held = record.lease.model_copy(update={"until_ms": 0}) if record.lease else None
    return execution.lease(record.model_copy(update={"lease": held}), holder, lease_ms, now_ms)


def spends_no_permit(record: SuspensionRecord, fence: Fence, intents: Any, events: Any, now_ms: int) -> Change:
    spent = execution.redeem(record, fence, intents, events, now_ms)
    return spent._replace(record=spent.record.model_copy(update={"items": record.items, "journal": ()}))


def saves_for_a_lost_lease(record: SuspensionRecord, fence: Fence, *rest: Any) -> Change:
    assert record.lease is not None
    mine = Fence(record.lease.holder, record.lease.attempt, fence.lease_ms)
    return execution.checkpoint(record, mine, *rest)


def decides_late(record: SuspensionRecord, decision: Any, now_ms: int) -> Change:
    return pauses.decide(record, decision, min([now_ms, *(item.terms.deadline_at_ms - 1 for item in record.items)]))


def decides_again(record: SuspensionRecord, decision: Any, now_ms: int) -> Change:
    if record.status is not Status.DECIDED or not record.items:
        return pauses.decide(record, decision, now_ms)
    opened = tuple(item.model_copy(update={"outcome": None}) for item in record.items)
    again = record.model_copy(update={"items": opened, "status": Status.PENDING})
    return pauses.decide(again, decision, now_ms)


def never_looks_again(record: SuspensionRecord, now_ms: int) -> Change:
    return Change(record)


def forgets_the_agenda(record: SuspensionRecord, *rest: Any) -> Change:
    change = execution.settle(record, *rest)
    return change._replace(record=change.record.model_copy(update={"due_at_ms": record.due_at_ms}))


def forgets_the_workers(record: SuspensionRecord, *rest: Any) -> Change:
    return pauses.decide(record, *rest)._replace(ready=False)


def remembers_no_doubt(record: SuspensionRecord, *rest: Any) -> Change:
    leased = execution.lease(record, *rest)
    unspent = tuple(item.model_copy(update={"permit": None}) for item in leased.record.items)
    return leased._replace(record=leased.record.model_copy(update={"journal": (), "items": unspent}))


def tells_of_resuming_twice(record: SuspensionRecord, *rest: Any) -> Change:
    receipt = record.receipt.model_copy(update={"resumed_at_ms": None})
    return execution.checkpoint(record.model_copy(update={"receipt": receipt}), *rest)


def believes_anybody(record: SuspensionRecord, key: str, holder: str, *rest: Any) -> Change:
    items = tuple(
        item.model_copy(update={"doubt": item.doubt and item.doubt.model_copy(update={"holder": holder})})
        for item in record.items
    )
    return pauses.report(record.model_copy(update={"items": items}), key, holder, *rest)


def cancels_what_has_ended(record: SuspensionRecord, *rest: Any) -> Change:
    if record.status is Status.RESUMED:
        record = record.model_copy(update={"status": Status.RESUMING})
    return pauses.cancel(record, *rest)


def gives_back_what_is_under_way(record: SuspensionRecord, *rest: Any) -> Change:
    return execution.release(record.model_copy(update={"journal": ()}), *rest)


def never_times_out(record: SuspensionRecord, now_ms: int) -> Change:
    return deadlines.remind(record, now_ms)


ONE = Scenario("broken", (REFUND,), AGAINST)
DOUBT = SCENARIOS[3][0]
UNASKED = replace(SCENARIOS[4][0], releases=True)


@pytest.mark.parametrize(
    ("scenario", "broken", "found"),
    [
        (ONE, {"lease": leases_what_is_leased}, "two workers hold one lease"),
        (ONE, {"redeem": spends_no_permit}, "started twice"),
        (ONE, {"checkpoint": saves_for_a_lost_lease}, "whose lease is over"),
        (ONE, {"decide": decides_late}, "wrong side of its deadline"),
        (ONE, {"decide": decides_again}, "decide led from decided"),
        (ONE, {"redrive": never_looks_again}, "finds nothing to do"),
        (ONE, {"keep_time": never_times_out}, "finds nothing to do"),
        (ONE, {"settle": forgets_the_agenda}, "place on the schedule"),
        (ONE, {"decide": forgets_the_workers}, "no worker is notified"),
        (ONE, {"lease": remembers_no_doubt}, "the permit of i1|started twice"),
        (ONE, {"checkpoint": tells_of_resuming_twice}, "not told exactly once a pause"),
        (DOUBT, {"report": believes_anybody}, "without anybody's word"),
        (replace(ONE, deeds=("cancel",)), {"cancel": cancels_what_has_ended}, "cancel led from resumed"),
        (UNASKED, {"release": gives_back_what_is_under_way}, "started twice"),
    ],
    ids=lambda one: next(iter(one.values())).__name__ if isinstance(one, dict) else "",
)
def test_explorer_finds_a_broken_transition(
    scenario: Scenario, broken: dict[str, Callable[..., Change]], found: str
) -> None:
    with pytest.raises(Breach, match=found):
        Explorer(replace(scenario, verbs=Verbs(**broken))).explore()


def test_explorer_finds_a_store_without_versions() -> None:
    with pytest.raises(Breach, match="what had ended was overwritten"):
        Explorer(replace(ONE, compares=False)).explore()
