"""What the desk adds to the verbs: one request has one effect, final answers are checked, each run is found."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import ItemKind
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, Intent, Lease, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.transitions.deciding import suspend
from sayso.core.transitions.execution import Fence
from sayso.errors import (
    AlreadyDecided,
    Conflict,
    DeadlinePassed,
    IdempotencyConflict,
    InvalidInput,
    PolicyForbids,
    StaleDigest,
)
from service.assembly import assemble
from service.core.desk.changes import draft_suspension
from service.core.desk.desk import Desk
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.store.runs.runs import Run, Runs
from service.core.wiring import Wiring
from tests.builders import ask, make_pending, make_running, person, run_ref, store_of
from tests.sayso.samples import intent
from tests.service.edge.web.sites import settings_for
from tests.service.worlds import POLICY

STATE = seal_state(b"{}")
LEASE_MS = 30_000


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, POLICY)


@pytest.fixture
async def wiring(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wired:
        yield wired


@pytest.fixture
def desk(wiring: Wiring) -> Desk:
    return wiring.desk


def word(record: SuspensionRecord, action: str = "approve", **fields: object) -> DecisionRequest:
    return DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest, **fields})


async def leased(wiring: Wiring) -> tuple[SuspensionRecord, Fence]:
    record = (await wiring.desk.lease((await make_running(wiring)).id, "w1", LEASE_MS)).record
    return record, Fence("w1", 1, LEASE_MS)


async def trail(wiring: Wiring, record: SuspensionRecord) -> list[str]:
    return [entry.type for entry in await wiring.runs.trail(record.run.id)]


# One request, one effect


async def test_a_start_repeated_under_its_key_is_the_first_run(desk: Desk) -> None:
    first, again = [await desk.start(run_ref(), STATE, key="k", request={"text": "hi"}) for _ in range(2)]
    assert (again.record, again.repeated) == (first.record, True)
    assert not first.repeated
    with pytest.raises(IdempotencyConflict):
        await desk.start(run_ref(), STATE, key="k", request={"text": "ho"})
    other = await desk.start(run_ref(owner="other"), STATE, key="k", request={"text": "hi"})
    assert other.record.id != first.record.id, "a key is its caller's own"


async def test_starts_without_a_key_are_each_a_run_of_their_own(desk: Desk) -> None:
    first, second = [await desk.start(run_ref(), STATE, request={"text": "hi"}) for _ in range(2)]
    assert first.record.id != second.record.id


async def test_a_decision_repeated_under_its_key_is_the_first_one(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring)
    first, again = [await desk.decide(record.id, "i1", word(record), person("anna"), key="k") for _ in range(2)]
    assert (again.record, again.repeated, first.repeated) == (first.record, True, False)
    with pytest.raises(IdempotencyConflict):
        await desk.decide(record.id, "i1", word(record, "deny"), person("anna"), key="k")


# Final answers


@pytest.mark.parametrize(
    ("amount", "error", "message"),
    [
        (2000, InvalidInput, "args.amount"),
        ("much", InvalidInput, "args.amount"),
        (600, PolicyForbids, r"refunds that much\. Change"),
    ],
)
async def test_edited_arguments_must_fit_the_tool_and_the_rules(
    wiring: Wiring, desk: Desk, amount: object, error: type[Exception], message: str
) -> None:
    record = await make_pending(wiring)
    edited = word(record, args={"order": "A-1", "amount": amount})
    with pytest.raises(error, match=message):
        await desk.decide(record.id, "i1", edited, person("anna"))
    assert (await desk.suspensions.read(record.id)).record == record


async def test_what_was_asked_may_be_approved_even_if_the_rules_would_now_deny_it(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring, ask(amount=600))
    saved = await desk.decide(record.id, "i1", word(record), person("anna"))
    assert saved.record.approved


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("much", InvalidInput, "value"),
        (7, InvalidInput, "value"),
        (2000, InvalidInput, "args.amount"),
        (600, PolicyForbids, r"refunds that much\. Change"),
    ],
)
async def test_a_given_value_must_fit_its_schema_the_tool_and_the_rules(
    wiring: Wiring, desk: Desk, value: object, error: type[Exception], message: str
) -> None:
    schema = {"type": "number", "minimum": 10}
    asked = ask(kind=ItemKind.INPUT).model_copy(update={"response_schema": schema})
    record = await make_pending(wiring, asked)
    with pytest.raises(error, match=message):
        await desk.decide(record.id, "i1", word(record, "value", value=value), person("anna"))
    saved = await desk.decide(record.id, "i1", word(record, "value", value=20), person("anna"))
    assert saved.record.approved


async def test_an_approval_takes_no_value(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring)
    with pytest.raises(InvalidInput, match="asks for approval, not for a value"):
        await desk.decide(record.id, "i1", word(record, "value", value=20), person("anna"))


async def test_late_decision_is_refused_as_late_even_if_invalid(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring)
    wrong = word(record, args={"order": "A-1", "amount": "much"})
    stale = wrong.model_copy(update={"digest": "0" * 64})
    with pytest.raises(StaleDigest):
        await desk.decide(record.id, "i1", stale, person("anna"))
    await desk.decide(record.id, "i1", word(record), person("anna"))
    with pytest.raises(AlreadyDecided):
        await desk.decide(record.id, "i1", wrong, person("ben"))


async def test_a_decision_after_the_deadline_lets_the_fallback_decide(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)), late_ms=999)
    while (await desk.suspensions.read(record.id)).now_ms < record.items[0].terms.deadline_at_ms:
        pass
    with pytest.raises(DeadlinePassed):
        await desk.decide(record.id, "i1", word(record), person("anna"))
    found = await desk.suspensions.read(record.id)
    assert found.record is not None
    assert found.record.status is Status.DECIDED
    assert not found.record.approved


# Time


async def test_a_look_does_only_what_time_calls_for(wiring: Wiring, desk: Desk) -> None:
    waiting = await make_pending(wiring)
    assert (await desk.tick(waiting.id)).repeated
    decided = (await desk.decide(waiting.id, "i1", word(waiting), person("anna"))).record
    assert (await desk.tick(decided.id)).record == decided
    cancelled = (await desk.cancel(decided.run.id, person("demo"))).record
    assert (await desk.tick(cancelled.id)).record == cancelled


async def test_a_decided_run_that_nobody_took_is_put_before_the_workers_again(wiring: Wiring, desk: Desk) -> None:
    draft = draft_suspension(TENANT, run_ref(), state=STATE)
    long_ago = await desk.suspensions.create(draft.id, lambda now_ms: suspend(draft, (), now_ms - 60_000))
    looked = await desk.tick(long_ago.record.id)
    assert looked.record.receipt.redrives == 1
    assert [one.id for one in await wiring.schedule.take(1, 3)] == [draft.id, draft.id]


# Cancelling


async def test_a_run_that_has_ended_is_not_cancelled(wiring: Wiring, desk: Desk) -> None:
    record, fence = await leased(wiring)
    await desk.settle(record.id, fence, RunEnd(status=RunStatus.COMPLETED), ())
    with pytest.raises(Conflict, match="already ended: completed"):
        await desk.cancel(record.run.id, person("demo"))


async def test_a_cancelled_run_stays_cancelled(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring)
    first = await desk.cancel(record.run.id, person("demo"), "enough")
    again = await desk.cancel(record.run.id, person("anna"), "more than enough")
    assert again.record == first.record
    assert await trail(wiring, record) == ["run_paused", "run_cancelled"]


class BehindRuns(Runs):
    """Runs with a stale index: the first read returns the previous suspension."""

    left: Run | None = None

    async def read(self, run_id: str) -> Run:
        """Return the run, the first time as it was."""
        left, self.left = self.left, None
        return left or await super().read(run_id)


async def test_a_run_that_moves_on_while_it_is_cancelled_is_cancelled_where_it_is(wiring: Wiring, desk: Desk) -> None:
    record, fence = await leased(wiring)
    runs = BehindRuns(store_of(wiring.runs._redis))
    runs.left = await wiring.runs.read(record.run.id)
    await desk.suspend_again(record, fence, (ask(),), STATE, (), 1)
    behind = Desk(desk.suspensions, runs, wiring.rulebook.refresh)
    cancelled = (await behind.cancel(record.run.id, person("demo"))).record
    assert cancelled.previous_id == record.id
    assert (await wiring.runs.read(record.run.id)).status is RunStatus.CANCELLED


async def test_a_run_that_ends_while_it_is_cancelled_is_said_to_have_ended(wiring: Wiring, desk: Desk) -> None:
    record, fence = await leased(wiring)
    runs = BehindRuns(store_of(wiring.runs._redis))
    runs.left = await wiring.runs.read(record.run.id)
    await desk.settle(record.id, fence, RunEnd(status=RunStatus.COMPLETED), ())
    with pytest.raises(Conflict, match="already ended: completed"):
        await Desk(desk.suspensions, runs, wiring.rulebook.refresh).cancel(record.run.id, person("demo"))


# Workers and leases


def intent_of(record: SuspensionRecord, fence: Fence) -> Intent:
    item_id = "i1" if record.items else None
    key = f"{record.id}:i1"
    return intent(item_id, idempotency_key=key, attempt=fence.attempt, holder=fence.holder)


async def test_the_calls_a_worker_knows_of_are_begun_with_its_lease(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring)
    await desk.decide(record.id, "i1", word(record), person("anna"))

    def plan(one: SuspensionRecord, fence: Fence, _now_ms: int) -> tuple[Intent, ...]:
        return (intent_of(one, fence),)

    taken = (await desk.lease(record.id, "w1", LEASE_MS, plan)).record
    assert taken.items[0].permit is not None
    assert [one.begun_at_ms for one in taken.journal] == [taken.updated_at_ms]
    assert (await trail(wiring, record))[-3:] == ["run_resuming", "run_resumed", "permit_redeemed"]
    again = await desk.lease(record.id, "w1", LEASE_MS, plan)
    assert (again.repeated, again.record) == (True, taken)


async def test_plan_that_cannot_start_keeps_the_lease(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring)
    await desk.decide(record.id, "i1", word(record, "deny"), person("anna"))
    taken = await desk.lease(record.id, "w1", LEASE_MS, lambda one, fence, _: (intent_of(one, fence),))
    assert (taken.record.status, taken.record.journal) == (Status.RESUMING, ())
    unplanned = await leased(wiring)
    assert unplanned[0].journal == ()


async def test_a_batch_is_saved_with_the_state_it_starts_from_and_begun_at_that_moment(
    wiring: Wiring, desk: Desk
) -> None:
    record, fence = await leased(wiring)
    state = seal_state(b'{"batch": 1}')
    begun = (await desk.redeem(record.id, fence, (intent_of(record, fence),), (), state)).record
    assert (begun.state, [one.begun_at_ms for one in begun.journal]) == (state.ref, [begun.updated_at_ms])
    assert await wiring.runs.state(record.run.id, state.ref) == b'{"batch": 1}'


async def test_step_uses_the_known_record_and_reads_a_stale_one(wiring: Wiring, desk: Desk) -> None:
    record, fence = await leased(wiring)
    known = await desk.renew(record.id, fence)
    saved = await desk.checkpoint(record.id, fence, STATE, (), known)
    assert saved.record.version == known.record.version + 1
    late = await desk.checkpoint(record.id, fence, STATE, (), known)
    assert late.record.version == saved.record.version + 1
    settled = await desk.settle(record.id, fence, RunEnd(status=RunStatus.COMPLETED), (), known)
    assert settled.record.status is Status.RESUMED
    again = await desk.settle(record.id, fence, RunEnd(status=RunStatus.COMPLETED), (), settled)
    assert again.repeated
    with pytest.raises(Conflict, match=r"Cannot checkpoint: .* not resuming"):
        await desk.checkpoint(record.id, fence, STATE, (), settled)


async def test_result_of_a_repeated_step_can_be_continued(wiring: Wiring, desk: Desk) -> None:
    record, fence = await leased(wiring)
    again = await desk.lease(record.id, "w1", LEASE_MS)
    assert again.repeated
    await desk.settle(record.id, fence, RunEnd(status=RunStatus.COMPLETED), (), again)
    entries = await wiring.runs.trail(record.run.id)
    assert [entry.seq for entry in entries] == [1, 2, 3]
    found = await desk.suspensions.read(record.id)
    assert found.record is not None
    assert found.record.updated_at_ms - record.updated_at_ms < LEASE_MS


async def test_time_never_runs_backwards_on_a_record(wiring: Wiring, desk: Desk) -> None:
    record, _ = await leased(wiring)
    later_ms = record.updated_at_ms + 3_600_000

    def ahead(one: SuspensionRecord, _now_ms: int) -> Change:
        held = Lease(holder="w1", attempt=1, until_ms=later_ms)
        return Change(one.model_copy(update={"updated_at_ms": later_ms, "lease": held}))

    await desk.suspensions.change(record.id, ahead)
    assert (await desk.suspensions.read(record.id)).now_ms >= later_ms


async def test_what_is_read_is_what_is_there(wiring: Wiring, desk: Desk) -> None:
    record = await make_pending(wiring)
    gone = await wiring.runs._redis.exists(TenantKeys(TENANT).suspension("sus_none"))
    assert gone == 0
    assert await desk.suspensions.read_many(["sus_none", record.id]) == [record]


async def test_decision_takes_the_place_of_ones_own_in_one_commit(desk: Desk, wiring: Wiring) -> None:
    record = await make_pending(wiring, ask(terms=RuleTerms.model_validate({"quorum": {"approve": 2}})))
    first = (await desk.decide(record.id, "i1", word(record), person("ben"), key="k1")).record
    (own,) = first.items[0].decisions
    denied = [
        (await desk.decide(record.id, "i1", word(record, "deny"), person("ben"), "k2", replaced=own.id)).record
        for _ in range(2)
    ]
    assert denied[0] == denied[1]
    (item,) = denied[0].items
    assert ([made.action for made in item.decisions], [made.id for made in item.voided]) == (["deny"], [own.id])
    assert denied[0].version == first.version + 1
    assert (await trail(wiring, record))[-3:] == ["decision_retracted", "decision_recorded", "decided"]


async def test_replaced_decision_stays_where_the_new_one_is_refused(desk: Desk, wiring: Wiring) -> None:
    record = await make_pending(wiring, ask(terms=RuleTerms.model_validate({"quorum": {"approve": 2}})))
    first = (await desk.decide(record.id, "i1", word(record), person("ben"), key="k1")).record
    (own,) = first.items[0].decisions
    for refused, by, replaced in (
        (word(record, "deny").model_copy(update={"digest": "0" * 64}), "ben", own.id),
        (word(record, "deny"), "anna", own.id),
        (word(record, "deny"), "ben", "dec_gone"),
    ):
        with pytest.raises((StaleDigest, Conflict)):
            await desk.decide(record.id, "i1", refused, person(by), "k2", replaced=replaced)
    assert (await desk.suspensions.read(record.id)).record == first
