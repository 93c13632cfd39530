"""A worker's first operations, and how long cached freezes are valid."""

from collections.abc import AsyncIterator

import pytest

from sayso.core.records.freezes import Freeze
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, Origin, SuspensionRecord
from sayso.errors import Unavailable
from service.assembly import assemble
from service.core.desk.changes import limit_start
from service.core.desk.suspending import Foreign
from service.core.settings import Settings
from service.core.store.suspensions.commits import Idempotency
from service.core.wiring import Wiring
from tests.builders import approve, make_pending
from tests.sayso.samples import T0, ask, pending


@pytest.fixture
async def wiring(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wired:
        yield wired


def touch(record: SuspensionRecord, _now_ms: int, _freezes: tuple[Freeze, ...]) -> Change:
    return Change(record)


def test_limit_start_applies_up_to_the_last_moment() -> None:
    record = pending()
    assert limit_start(touch, (), T0)(record, T0) == Change(record, until_ms=T0)
    assert limit_start(touch, (), 0)(record, T0) == Change(record)
    with pytest.raises(Unavailable):
        limit_start(touch, (), T0)(record, T0 + 1)


@pytest.mark.parametrize(("ended_ms", "dated_ms"), [(T0 - 1, T0), (T0 + 1, T0 + 1), (T0 + 20, T0 + 20), (T0 + 21, T0)])
def test_no_start_is_dated_shortly_before_the_end_of_a_freeze(ended_ms: int, dated_ms: int) -> None:
    dated: list[int] = []

    def note(record: SuspensionRecord, now_ms: int, _freezes: tuple[Freeze, ...]) -> Change:
        dated.append(now_ms)
        return Change(record)

    ended = Freeze(id="frz_1", scope="all", by="root", at_ms=T0 - 100, unfrozen_by="root", unfrozen_at_ms=ended_ms)
    held = Freeze(id="frz_2", scope="tool:other", by="root", at_ms=T0 - 50)
    limit_start(note, (ended, held), 0)(pending(), T0)
    assert dated == [dated_ms]


async def test_lease_without_planned_calls_adds_only_run_resuming(wiring: Wiring) -> None:
    record = await approve(wiring, await make_pending(wiring))
    leased = await wiring.desk.lease(record.id, "w1", 30_000)
    assert leased.record.receipt.resumed_at_ms is None
    kinds = [entry.type for entry in await wiring.runs.trail(record.run.id)]
    assert kinds[-1] == "run_resuming"


def test_foreign_keep_extends_keys_only_of_other_protocols() -> None:
    seen, drafts = Idempotency("bot", "k", "f", "sus_1"), (ask(timeout_s=2), ask(1, timeout_s=3))
    for kept_ms, expected in ((0, seen.kept_ms), (5, 3_005)):
        foreign = Foreign(Origin(), seal_state(b"{}"), kept_ms=kept_ms)
        kept = foreign.keep(seen, drafts)
        assert kept is not None
        assert kept.kept_ms == expected
        assert foreign.keep(None, drafts) is None
