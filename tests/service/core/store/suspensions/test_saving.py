"""A process continues from the record that it saved last, and reads again after a conflict."""

import pytest
from redis.asyncio import Redis

from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import Change, ResumeSpec, Status, SuspensionRecord
from sayso.core.transitions.deciding import decide, suspend
from sayso.errors import NotAuthenticated, NotFound
from service.core.store.keys import TenantKeys
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.saving import Saved, Suspensions
from tests.builders import store_of
from tests.proofs.faulty_stores import FaultySuspensions
from tests.sayso.samples import ask, draft, word

KEYS = TenantKeys("default")


async def create(store: Suspensions, suspension_id: str = "sus_1", **fields: object) -> Saved:
    begun = draft(id=suspension_id, **fields)
    return await store.create(suspension_id, lambda now_ms: suspend(begun, (ask(),), now_ms))


def tell(record: SuspensionRecord, now_ms: int) -> Change:
    """A step that is another one each time it is taken."""
    noted = Event(type=EventType.WARNING, data={"message": "x"})
    return Change(record.model_copy(update={"updated_at_ms": now_ms}), (noted,))


def approve(record: SuspensionRecord, now_ms: int) -> Change:
    return decide(record, word(record), now_ms)


async def count_scripts(redis: Redis) -> int:
    """Return how many scripts the server has run: a look is one, a commit is one."""
    stats = await redis.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha"))


async def test_what_does_not_exist_is_not_found(store: Suspensions) -> None:
    with pytest.raises(NotFound, match="no suspension 'sus_9'"):
        await store.read("sus_9")


async def test_of_a_long_chain_the_latest_are_read(store: Suspensions) -> None:
    for number in range(1, 4):
        await create(store, f"sus_{number}", previous_id=f"sus_{number - 1}" if number > 1 else None)
    chain = await store.read_chain("sus_3", 2)
    assert len(chain) == 2
    assert [record.id for record in chain if isinstance(record, SuspensionRecord)] == ["sus_2", "sus_3"]
    assert len(await store.read_chain("sus_3", 9)) == 3


async def test_what_waits_is_remembered_and_changed_without_a_look(store: Suspensions, redis: Redis) -> None:
    await create(store)
    before = await count_scripts(redis)
    await store.change("sus_1", tell)
    assert await count_scripts(redis) == before + 1
    await store.change("sus_1", approve)
    assert await count_scripts(redis) == before + 2


async def test_what_was_read_is_changed_without_another_read(store: Suspensions, redis: Redis) -> None:
    other = await create(store)
    store._recent.clear()
    await store.read(other.record.id)
    before = await count_scripts(redis)
    await store.change("sus_1", approve)
    assert await count_scripts(redis) == before + 1


async def test_what_no_longer_waits_is_not_remembered(store: Suspensions, redis: Redis) -> None:
    await create(store)
    saved = await store.change("sus_1", approve)
    before = await count_scripts(redis)
    await store.change("sus_1", tell)
    assert await count_scripts(redis) == before + 2
    looked = await store.change("sus_1", tell)
    before = await count_scripts(redis)
    with_known = await store.change("sus_1", tell, known=looked)
    assert await count_scripts(redis) == before + 1
    assert with_known.record.version == saved.record.version + 3


async def test_wrong_idea_of_the_time_is_corrected(store: Suspensions) -> None:
    await create(store)
    saved = await store.change("sus_1", approve)
    ahead = saved._replace(now_ms=saved.now_ms + 600_000)
    changed = await store.change("sus_1", tell, known=ahead)
    assert changed.record.updated_at_ms < ahead.now_ms


@pytest.mark.parametrize("fault", ["the reply is lost", "the command is lost"])
async def test_a_step_whose_reply_is_lost_is_taken_once(redis: Redis, fault: str) -> None:
    seconds, _ = await redis.time()
    store = FaultySuspensions(store_of(redis), seconds * 1000)
    await create(store)
    store.fault = fault
    saved = await store.change("sus_1", tell)
    assert store.ran == fault.startswith("the reply")
    assert saved.record.version == 2
    assert (await store.read("sus_1")).record == saved.record
    assert [one.type for one in await Runs(store_of(redis)).trail("run_1")] == ["run_paused", "warning"]


async def test_nothing_is_asked_for_an_instance_that_is_gone(store: Suspensions, redis: Redis) -> None:
    await redis.set(KEYS.gone("aap_1"), "1|")
    with pytest.raises(NotAuthenticated, match="was deleted"):
        await create(store, resume=ResumeSpec(mode="poll", endpoint_id="aap_1"))
    assert (await create(store, resume=ResumeSpec(mode="poll", endpoint_id="aap_2"))).record.status is (Status.PENDING)
