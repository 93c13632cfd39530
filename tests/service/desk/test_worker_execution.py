"""What a worker's first steps come to: a lease tells of itself alone, and nothing starts by what is known too long."""

from collections.abc import AsyncIterator

import pytest

from sayso.errors import Unavailable
from sayso.records.run_state import seal_state
from sayso.records.suspensions import Change, Origin, SuspensionRecord
from service.desk.desk import Foreign
from service.desk.worker_execution import Sure
from service.settings import Settings
from service.store.suspensions.commits import Idempotency
from service.wiring import Wiring, assemble
from tests.builders import approve, make_pending
from tests.sayso.samples import T0, ask, pending


@pytest.fixture
async def wiring(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wired:
        yield wired


def touch(record: SuspensionRecord, _now_ms: int) -> Change:
    return Change(record)


def test_what_is_known_is_good_up_to_its_last_moment() -> None:
    record = pending()
    assert Sure((), T0).bind(touch)(record, T0) == Change(record, until_ms=T0)
    assert Sure((), 0).bind(touch)(record, T0) == Change(record)
    with pytest.raises(Unavailable):
        Sure((), T0).bind(touch)(record, T0 + 1)


async def test_a_lease_with_nothing_planned_does_not_tell_that_the_run_goes_on(wiring: Wiring) -> None:
    record = await approve(wiring, await make_pending(wiring))
    leased = await wiring.desk.lease(record.id, "w1", 30_000)
    assert leased.record.receipt.resumed_at_ms is None
    kinds = [entry.type for entry in await wiring.runs.trail(record.run.id)]
    assert kinds[-1] == "run_resuming"


def test_a_key_is_kept_longer_only_where_the_protocol_says_so() -> None:
    seen, drafts = Idempotency("bot", "k", "f", "sus_1"), (ask(timeout_s=2), ask(1, timeout_s=3))
    for kept_ms, expected in ((0, seen.kept_ms), (5, 3_005)):
        foreign = Foreign(Origin(), seal_state(b"{}"), kept_ms=kept_ms)
        kept = foreign.keep(seen, drafts)
        assert kept is not None
        assert kept.kept_ms == expected
        assert foreign.keep(None, drafts) is None
