"""Replays read the store page by page, judge in processes of their own, and name what is no longer recorded."""

import asyncio
import gc
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from sayso.core.clock import new_id
from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest, Shown
from sayso.core.records.suspensions import ResumeSpec, RunRef, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import InvalidInput, NotFound, TooManyRequests
from sayso.features.whatif.reevaluation import ERASED
from sayso.wire.rulebook import Effect, Past, ReplayStatus
from service.core.operations.runs import erase_run
from service.core.settings import Settings
from service.core.store.connection.connecting import connect
from service.core.wiring import Wiring
from service.features.whatif.replays import DELETED, PAGE_RUNS, PROCESSES, ReplayRequest, RuleReplays
from service.features.whatif.store import SILENT_MS, Replay, ReplayStore
from service.features.whatif.trials import RawRun, RecordedRuns
from tests.builders import await_calls_after, person, store_of
from tests.service.worlds import World

LIVE = """\
version: 1
default: allow
rules:
  - {id: large, priority: 200, tool: refund, when: args.amount > 100, action: request_approval}
  - {id: never, tool: drop, action: deny}
"""
WRONG = LIVE.replace("> 100", "> 10000")
FOREVER = (0, 2**53)
TOOL = ToolDefinition(name="any", parameters={"type": "object"})
SHOWN = Shown(display_hash="1:x", values=1, values_shown=1, look_ms=12_000)


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(LIVE)
    return Settings(redis_url=clean_store_url, policy=policy)


@pytest.fixture
def replays(world: World) -> RuleReplays:
    found: RuleReplays = world.app.state.rule_replays
    return found


async def request(wiring: Wiring, tool: str, **args: object) -> SuspensionRecord:
    """Ask the desk about one call, as an agent outside does."""
    run = RunRef(id=new_id("run"), agent="shop", owner="demo", thread_id=new_id("thr"))
    call = ToolCall(call_id="c", index=0, name=tool, args=args)
    external = ExternalCall(call, TOOL.model_copy(update={"name": tool}))
    return (await wiring.desk.suspend(run, [external], ResumeSpec(mode="poll", resumer="calls"))).record


async def refund(wiring: Wiring, amount: int, action: str = "", shown: Shown | None = SHOWN) -> SuspensionRecord:
    """Ask about a refund in euros, and let Anna decide it."""
    record = await request(wiring, "refund", amount=amount, currency="EUR")
    if not action:
        return record
    decision = DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest})
    saved = await wiring.desk.decide(record.id, "i1", decision, person("anna"), shown=shown)
    return saved.record


async def replay(replays: RuleReplays, text: str, span: tuple[int, int] = FOREVER, base: str | None = None) -> Replay:
    """Return the replay of a draft when it has ended."""
    started = await replays.start(ReplayRequest(text, "draft.yaml", *span, base=base), "root")
    return await replays.wait(started.id, 60)


async def test_replay_counts_calls_beside_what_people_decided(world: World, replays: RuleReplays) -> None:
    wiring = world.wiring
    await refund(wiring, 50)
    await refund(wiring, 250, "approve")
    denied = await refund(wiring, 900, "deny")
    await refund(wiring, 20_000, "deny", shown=None)
    await refund(wiring, 300)
    await request(wiring, "drop", table="orders")
    found = await replay(replays, WRONG)
    assert (found.status, found.error, found.runs, found.of_runs) == (ReplayStatus.DONE, "", 6, 6)
    assert [(one.past, one.now, one.count, one.sums) for one in found.result.list_cells()] == [
        (Past.ALLOWED, Effect.ALLOWED, 1, {"EUR": Decimal(50)}),
        (Past.APPROVED, Effect.ALLOWED, 1, {"EUR": Decimal(250)}),
        (Past.DENIED, Effect.ALLOWED, 1, {"EUR": Decimal(900)}),
        (Past.DENIED, Effect.ASKED, 1, {"EUR": Decimal(20_000)}),
        (Past.UNDECIDED, Effect.ALLOWED, 1, {"EUR": Decimal(300)}),
        (Past.REFUSED, Effect.DENIED, 1, {}),
    ]
    (listed,) = next(one for one in found.result.list_cells() if one.past is Past.DENIED).listed
    assert (listed.suspension_id, listed.item_id, listed.args["amount"]) == (denied.id, "i1", 900)
    assert (found.result.find_typical_look_ms(), found.result.estimate_saved_ms()) == (12_000, 24_000)
    assert (await replay(replays, LIVE)).result.changed == 0
    assert (await replay(replays, WRONG, base=WRONG)).result.changed == 0


async def test_replay_reads_only_calls_of_its_range(world: World, replays: RuleReplays) -> None:
    early = await refund(world.wiring, 900, "deny")
    begin_ms = early.updated_at_ms + 1
    await await_calls_after(world.wiring, begin_ms)
    late = await refund(world.wiring, 901, "deny")
    after = await replay(replays, WRONG, (begin_ms, 2**53))
    before = await replay(replays, WRONG, (0, begin_ms))
    listed = [[one.run_id for cell in found.result.list_cells() for one in cell.listed] for found in (after, before)]
    assert listed == [[late.run.id], [early.run.id]]
    assert after.runs == 1, "the last event of the earlier run is before the range"


async def test_replay_counts_calls_of_deleted_runs_as_missing(world: World, replays: RuleReplays) -> None:
    record = await refund(world.wiring, 900)
    await world.wiring.desk.cancel(record.run.id, person("root"))
    await refund(world.wiring, 50)
    assert await world.wiring.retention.forget_runs(2**53, 10) == 1
    found = await replay(replays, WRONG)
    assert found.result.missing == {DELETED: 1}
    assert found.result.judged == 1
    (deleted,) = [one for one in found.gaps if "deleted" in one and "SAYSO_KEEP_RUNS_DAYS" in one]
    assert deleted.startswith("1 of the runs were deleted, 30 days after their end")
    assert any("SAYSO_KEEP_TRAIL_DAYS" in one for one in found.gaps), "the range begins before any trail is kept"


async def test_replay_counts_erased_calls_apart_from_deleted_ones(world: World, replays: RuleReplays) -> None:
    wiring = world.wiring
    for amount in (900, 901, 902):
        record = await refund(wiring, amount)
        await wiring.desk.cancel(record.run.id, person("root"))
        if amount != 900:
            await erase_run(wiring, record.run.id, person("root"), "asked by the customer")
        if amount != 902:
            assert await wiring.retention.forget_runs(2**53, 10) == 1
    await refund(wiring, 50)
    found = await replay(replays, WRONG)
    assert found.result.missing == {DELETED: 1, ERASED: 2}
    assert found.result.judged == 1
    (gap,) = [one for one in found.gaps if "erased" in one]
    assert gap.startswith("The contents of 2 of the calls were erased")


class CountingRuns(RecordedRuns):
    """Recorded runs that count how many of them are in memory at once."""

    most = 0

    async def read(self, run_ids: Sequence[str]) -> list[RawRun]:
        alive = sum(isinstance(one, RawRun) for one in gc.get_objects())
        self.most = max(self.most, alive + len(run_ids))
        assert len(run_ids) <= PAGE_RUNS
        return await super().read(run_ids)


async def test_replay_holds_a_bounded_number_of_runs(world: World, replays: RuleReplays) -> None:
    """Whatever the range, no more runs are in memory than pages are being judged, and one that is read."""
    number = (PROCESSES + 4) * PAGE_RUNS
    names = iter(range(number))

    async def work() -> None:
        for amount in names:
            await request(world.wiring, "refund", amount=amount % 100)

    await asyncio.gather(*(work() for _ in range(16)))
    redis = connect(world.wiring.settings.store_url)
    counting = CountingRuns(store_of(redis))
    world.wiring._parts[RecordedRuns] = counting
    found = await replay(replays, WRONG)
    await redis.aclose()
    assert found.result.count == number
    assert counting.most <= (PROCESSES + 2) * PAGE_RUNS


async def test_replay_of_faulty_rules_does_not_start(world: World, replays: RuleReplays) -> None:
    with pytest.raises(InvalidInput, match=r"draft\.yaml has faults: draft\.yaml:1:1: default: is missing") as caught:
        await replays.start(ReplayRequest("version: 1\nrules: []\n", "draft.yaml", *FOREVER), "root")
    assert len(caught.value.facts["errors"]) == 1  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"base has faults: base:1:1: default: is missing") as caught:
        await replays.start(ReplayRequest(LIVE, "draft.yaml", *FOREVER, base="version: 1\nrules: []\n"), "root")
    assert caught.value.facts["errors"][0]["path"] == "$.base"  # type: ignore[index]
    with pytest.raises(InvalidInput, match="range is empty"):
        await replays.start(ReplayRequest(LIVE, "draft.yaml", 5, 5), "root")
    with pytest.raises(InvalidInput, match=r"args\.amount"):
        await replays.start(ReplayRequest(LIVE, "draft.yaml", *FOREVER, path="amount"), "root")
    assert await world.wiring.part(ReplayStore).list_all(0) == []


async def test_replays_wait_for_each_other_up_to_a_limit(world: World, replays: RuleReplays) -> None:
    await refund(world.wiring, 900, "deny")
    asked = ReplayRequest(WRONG, "draft.yaml", *FOREVER)
    async with replays.turn:  # as if an earlier one lasted
        started = [await replays.start(asked, "root") for _ in range(8)]
        with pytest.raises(TooManyRequests):
            await replays.start(asked, "root")
        for one in started[1:-1]:
            assert await replays.delete(one.id)
    assert {(await replays.wait(one.id, 60)).status for one in (started[0], started[-1])} == {ReplayStatus.DONE}
    assert len(await world.wiring.part(ReplayStore).list_all(0)) == 2
    with pytest.raises(NotFound):
        await replays.wait(started[1].id, 0)
    assert not await replays.delete(started[1].id)


async def test_replays_that_start_at_the_same_time_keep_the_limit(world: World, replays: RuleReplays) -> None:
    asked = ReplayRequest(WRONG, "draft.yaml", *FOREVER)
    async with replays.turn:
        found = await asyncio.gather(*(replays.start(asked, "root") for _ in range(12)), return_exceptions=True)
        refused = [one for one in found if isinstance(one, TooManyRequests)]
        assert len(refused) == 4
        assert len(await world.wiring.part(ReplayStore).list_all(0)) == 8
    assert refused[0].message == "8 replays wait or run. Wait until one ends, or delete one."


async def test_replay_with_faults_gives_its_place_back(replays: RuleReplays) -> None:
    async with replays.turn:
        for _ in range(9):
            with pytest.raises(InvalidInput):
                await replays.start(ReplayRequest("version: 1\n", "draft.yaml", *FOREVER), "root")
        await replays.start(ReplayRequest(LIVE, "draft.yaml", *FOREVER), "root")


async def test_replay_whose_process_is_gone_has_failed(world: World) -> None:
    store = world.wiring.part(ReplayStore)
    at_ms = await world.wiring.schedule.now_ms()
    lost = Replay(
        id="rpl_1", by="root", file="a", version="v", from_ms=0, to_ms=1, started_at_ms=at_ms, updated_at_ms=at_ms
    )
    await store.create(lost)
    assert (await store.read("rpl_1", at_ms + SILENT_MS - 1)).status is ReplayStatus.WAITING
    found = await store.read("rpl_1", at_ms + SILENT_MS)
    assert (found.status, "Start the replay again" in found.error) == (ReplayStatus.FAILED, True)
    await store.delete("rpl_1")
    assert not await store.update(lost), "a deleted replay does not come back"
