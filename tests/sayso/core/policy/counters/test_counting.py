"""Which changes of a suspension count a call and which take that back, and the window against a brute-force oracle."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.counters.charging import CounterBook, find_counted
from sayso.core.policy.counters.readings import Wanted
from sayso.core.records.decisions import Actor, ActorKind, Report, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import ItemDraft, PresetOutcome
from sayso.core.records.judgements import Charge, place_charges, slot_ms
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, ResumeSpec, RunEnd, RunStatus, SuspensionRecord
from sayso.core.transitions import client_execution, deciding, execution
from sayso.core.transitions.execution import Fence
from sayso.errors import OverLimit
from tests.sayso.samples import T0, ask, draft, intent, person, word

CHARGE = Charge(counter="c", per_s=3600, amount=5, most=9)
OTHER = Charge(counter="d", per_s=3600)
FENCE, STATE = Fence("w1", 1, 30_000), seal_state(b"{}")
ALLOWED = PresetOutcome(verdict=Verdict.APPROVED, by=Actor(id="policy", kind=ActorKind.POLICY))
DENIED = ALLOWED.model_copy(update={"verdict": Verdict.DENIED})
(PLACED,) = place_charges([CHARGE], T0)


def allowed(index: int = 0, preset: PresetOutcome | None = ALLOWED) -> ItemDraft:
    return ask(index).model_copy(update={"charges": (CHARGE,), "preset": preset})


def begin(*drafts: ItemDraft, mode: str = "worker") -> Change:
    return deciding.suspend(draft(resume=ResumeSpec.model_validate({"mode": mode})), drafts, T0)


def leased(*drafts: ItemDraft) -> SuspensionRecord:
    return execution.lease(begin(*drafts).record, "w1", 30_000, T0).record


def count(before: SuspensionRecord | None, change: Change) -> tuple[int, int]:
    """Return what a change adds to the counter and what it takes back."""
    counted = find_counted(before, change)
    return sum(one.amount for one in counted.added), sum(one.amount for one in counted.removed)


def test_allowed_call_counts_when_it_is_asked() -> None:
    assert count(None, begin(allowed())) == (5, 0)
    assert begin(allowed()).record.items[0].charges == (PLACED,)
    assert count(None, begin(allowed(), allowed(1))) == (10, 0)


@pytest.mark.parametrize("preset", [None, DENIED], ids=["asked", "denied"])
def test_call_that_may_not_run_does_not_count(preset: PresetOutcome | None) -> None:
    assert count(None, begin(allowed(preset=preset))) == (0, 0)


@pytest.mark.parametrize("item_id", ["i1", None], ids=["asked", "allowed"])
def test_call_counts_when_a_worker_starts_it(item_id: str | None) -> None:
    record = execution.lease(deciding.decide(begin(ask()).record, word(begin(ask()).record), T0).record, "w1", 1, T0)
    intents = (intent(item_id, charges=(CHARGE,)),)
    redeemed = execution.redeem(record.record, FENCE, intents, (), T0)
    assert count(record.record, redeemed) == (5, 0)
    again = execution.redeem(redeemed.record, FENCE, (intent(None, charges=(CHARGE,)),), (), T0 + 10**7)
    assert count(redeemed.record, again) == (0, 0), "it may have run before"
    saved = execution.checkpoint(redeemed.record, FENCE, STATE, (), T0)
    assert count(redeemed.record, saved) == (0, 0), "it ran"


def test_allowed_call_counts_once_although_a_worker_starts_it() -> None:
    record = leased(allowed())
    redeemed = execution.redeem(record, FENCE, (intent(charges=(CHARGE,)),), (), T0)
    assert count(record, redeemed) == (0, 0)
    ended = execution.settle(redeemed.record, FENCE, RunEnd(status=RunStatus.COMPLETED), (), T0)
    assert count(redeemed.record, ended) == (0, 0)


def test_each_call_of_a_batch_counts_for_itself() -> None:
    record = leased(allowed())
    first = execution.redeem(record, FENCE, (intent(None, 7, charges=(CHARGE,)),), (), T0)
    second = execution.redeem(first.record, FENCE, (intent(None, 8, charges=(OTHER,)),), (), T0)
    assert (count(record, first), count(first.record, second)) == ((5, 0), (1, 0))


def test_call_that_never_started_is_taken_back() -> None:
    record = leased()
    redeemed = execution.redeem(record, FENCE, (intent(None, charges=(CHARGE,)),), (), T0)
    returned = execution.return_permits(redeemed.record, FENCE, {0}, T0)
    assert count(redeemed.record, returned) == (0, 5)
    assert count(returned.record, execution.redeem(returned.record, FENCE, (intent(None, charges=(CHARGE,)),), (), T0))


def test_permit_of_an_allowed_call_returns_and_its_charge_stays() -> None:
    record = leased(allowed())
    redeemed = execution.redeem(record, FENCE, (intent(charges=(CHARGE,)),), (), T0)
    returned = execution.return_permits(redeemed.record, FENCE, {0}, T0)
    assert count(redeemed.record, returned) == (0, 0)


def test_allowed_call_of_a_run_that_ends_without_it_is_taken_back() -> None:
    record = leased(allowed())
    ends = [
        execution.settle(record, FENCE, RunEnd(status=RunStatus.DEGRADED), (), T0),
        execution.give_up(record, FENCE, "no such agent", (), T0),
        deciding.cancel(record, person("ada"), None, T0),
        execution.suspend_again(record, FENCE, draft(id="sus_2"), (ask(),), STATE, (), T0),
    ]
    assert [count(record, one) for one in ends] == [(0, 5)] * 4


def test_allowed_call_is_carried_over_without_counting_again() -> None:
    record = leased(allowed())
    kept = allowed().model_copy(update={"charges": record.items[0].charges})
    following = execution.suspend_again(record, FENCE, draft(id="sus_2"), (kept, ask(1)), STATE, (), T0 + 10**7)
    assert count(record, following) == (0, 0)
    denied = kept.model_copy(update={"preset": DENIED})
    following = execution.suspend_again(record, FENCE, draft(id="sus_2"), (denied, ask(1)), STATE, (), T0)
    assert count(record, following) == (0, 5)


def test_started_call_of_a_cancelled_run_stays_counted() -> None:
    redeemed = execution.redeem(leased(allowed()), FENCE, (intent(charges=(CHARGE,)),), (), T0).record
    assert count(redeemed, deciding.cancel(redeemed, person("ada"), None, T0)) == (0, 0)


def test_revived_run_counts_its_calls_as_they_start() -> None:
    failed = execution.give_up(leased(allowed()), FENCE, "no such agent", (), T0).record
    revived = execution.revive(failed, person("ada"), T0)
    assert count(failed, revived) == (0, 0)
    record = execution.lease(revived.record, "w1", 30_000, T0).record
    fence = Fence("w1", 2, 30_000)
    assert count(record, execution.redeem(record, fence, (intent(charges=(CHARGE,)),), (), T0)) == (5, 0)


def test_client_call_counts_once_and_is_taken_back_when_it_lapses() -> None:
    begun = begin(allowed(), mode="poll")
    late_ms = begun.record.items[0].start_by_ms
    assert count(begun.record, client_execution.lapse(begun.record, late_ms)) == (0, 5)
    redeemed = client_execution.client_redeem(begun.record, "i1", "k", T0)
    assert count(begun.record, redeemed) == (0, 0)
    report = Report(success=False, error="no money", at_ms=0)
    reported = client_execution.conclude(redeemed.record, "i1", "k", report, T0)
    assert count(redeemed.record, reported) == (0, 0), "it started"
    silent = client_execution.lapse(redeemed.record, T0 + 10**9)
    assert count(redeemed.record, silent) == (0, 0), "nobody knows whether it ran"


def test_approved_client_call_counts_when_it_starts() -> None:
    waiting = begin(ask(), mode="poll").record
    decided = deciding.decide(waiting, word(waiting), T0).record
    redeemed = client_execution.client_redeem(decided, "i1", "k", T0)
    charged = client_execution.charge_item(redeemed, "i1", (CHARGE, OTHER), T0)
    assert count(decided, charged) == (6, 0)
    assert client_execution.charge_item(redeemed, "i1", (), T0) is redeemed


def test_warnings_and_renewals_count_nothing() -> None:
    record = leased(allowed())
    assert count(record, execution.renew(record, FENCE, T0)) == (0, 0)
    assert count(record, Change(record, (Event(EventType.WARNING, {}),))) == (0, 0)


def test_book_counts_all_charges_or_none() -> None:
    book = CounterBook()
    book.add(place_charges([CHARGE], T0))
    with pytest.raises(OverLimit):
        book.add(place_charges([OTHER, CHARGE], T0))
    held = book.read([Wanted("c", 3600), Wanted("d", 3600)], T0)
    assert [held["c"].total, held["d"].total] == [5, 0]


def test_limits_of_one_commit_hold_for_each_charge_in_order() -> None:
    book = CounterBook()
    free = CHARGE.model_copy(update={"most": None})
    with pytest.raises(OverLimit):
        book.add(place_charges([CHARGE, CHARGE], T0))
    with pytest.raises(OverLimit):
        book.add(place_charges([free, CHARGE], T0))
    book.add(place_charges([CHARGE, free], T0))
    assert book.read([Wanted("c", 3600)], T0)["c"].total == 10


def test_samples_give_a_percentile_of_those_within_the_period() -> None:
    book = CounterBook()
    for amount in range(1, 41):
        sample = Charge(counter="s", per_s=3600, amount=amount, sample=True)
        book.add(place_charges([sample], T0 + (0 if amount <= 20 else 4_000_000)))
    book.remove(place_charges([Charge(counter="s", per_s=3600, amount=40, sample=True)], T0 + 4_000_000))
    held = book.read([Wanted("s", 3600, 95)], T0 + 4_000_000)["s"]
    assert (held.samples, held.total) == (19, 39)
    assert book.read([Wanted("t", 3600, 95)], T0)["t"].samples == 0


STEPS = st.lists(
    st.tuples(st.integers(0, 7_000), st.integers(0, 6), st.sampled_from(["start", "start", "start", "undo"])),
    max_size=80,
)


@given(STEPS, st.integers(10, 61), st.integers(1, 12))
def test_window_is_never_over_and_frees_what_is_old(steps: list[tuple[int, int, str]], per_s: int, most: int) -> None:
    """No window of the period holds more than `most`, and a refusal is right but for two slots of time."""
    book, now_ms, period_ms = CounterBook(), T0, per_s * 1000
    ran: list[tuple[int, Charge]] = []
    for passed_ms, amount, action in steps:
        now_ms += passed_ms
        if action == "undo" and ran:
            book.remove([ran.pop()[1]])
            continue
        held = book.read([Wanted("c", per_s)], now_ms)["c"].total
        (charge,) = place_charges([Charge(counter="c", per_s=per_s, amount=amount, most=most)], now_ms)
        grace_ms = period_ms + 3 * slot_ms(per_s)
        recent = sum(one.amount for at_ms, one in ran if at_ms > now_ms - grace_ms)
        try:
            book.add([charge])
        except OverLimit:
            assert held + amount > most, "reading and counting agree"
            assert recent + amount > most, "nothing that is old counts"
            continue
        assert held + amount <= most
        ran.append((now_ms, charge))
        assert sum(one.amount for at_ms, one in ran if at_ms > now_ms - period_ms) <= most


def test_counter_of_amounts_is_a_multiset() -> None:
    twice = begin(allowed(), allowed(1))
    assert Counter(find_counted(None, twice).added) == {PLACED: 2}
