"""The contents of an ended run are gone wherever they were; its decisions, its trail and its digests remain."""

import asyncio
from typing import Any

import pytest
from redis import Redis

from sayso.core.records.chain import find_break
from sayso.core.records.events import EventType
from sayso.core.records.items import Prompt
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.transitions.execution import Fence
from sayso.errors import Conflict, NotFound, Unreadable
from service.core.operations.runs import erase_run
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.store.suspensions.reading import pack_record, unpack_record
from service.core.wiring import Wiring
from service.features.discussions.discussing import add_comment, attach
from service.features.operate.diagnostics import diagnose
from service.features.whatif.store import Replay, ReplayStore
from tests.builders import CLEAR, answer_question, approve, ask, finish, give_up, make_pending, person
from tests.service.damages import KEYS
from tests.service.worlds import World
from tests.workers.test_announcing import add_endpoint
from workers.outbox import FanOut

MARK = "Erika Mustermann"
WHY = "Request of the customer"


async def make_ended(wiring: Wiring) -> SuspensionRecord:
    """A run that ended, with the name of a customer wherever people or agents can write."""
    draft = ask(to=MARK, terms=RuleTerms(reviewers=("anna",)))
    draft = draft.model_copy(update={"prompt": Prompt(title=MARK, body=MARK, reason=MARK, metadata={"name": MARK})})
    record = await make_pending(wiring, draft)
    await attach(wiring, record.id, "i1", "letter.txt", MARK.encode(), person("anna"))
    await add_comment(wiring, record.id, "i1", f"Is it {MARK}?", "anna", None)
    await wiring.part(ExternalEvents).add(record.run.id, "agent", "sayso", [ExternalEvent(1, None, {"type": MARK})])
    await wiring.desk.ask_requester(record.id, "i1", f"Who is {MARK}?", person("anna"), None)
    await answer_question(wiring, record, MARK)
    decided = await approve(wiring, record)
    return await finish(wiring, decided, result={"text": MARK})


def find_contents(url: str, text: str = MARK) -> list[str]:
    """The keys of the store whose values, with records unpacked, have the text. Workers emptied the ready list."""
    found = []
    with Redis.from_url(url) as redis:
        redis.delete(KEYS.ready)
        for name in redis.scan_iter():
            key, kind = name.decode(), redis.type(name).decode()
            raw: Any = {
                "string": lambda one: [redis.get(one)],
                "list": lambda one: redis.lrange(one, 0, -1),
                "hash": lambda one: [part for pair in redis.hgetall(one).items() for part in pair],
                "zset": lambda one: redis.zrange(one, 0, -1),
                "set": redis.smembers,
            }[kind](name)
            if ":s:" in key:
                raw = [unpack_record(one)[0].model_dump_json().encode() for one in raw]
            found += [key] if any(text.encode() in one for one in raw) else []
    return found


async def test_contents_of_a_run_are_erased_wherever_they_are(world: World, clean_store_url: str) -> None:
    wiring = world.wiring
    ended = await make_ended(wiring)
    run_id = ended.run.id
    kinds = {one.split(":")[2] for one in find_contents(clean_store_url)}
    assert {"s", "e", "external", "comments", "file-contents"} <= kinds
    before = await wiring.runs.trail(run_id)
    erasure = await erase_run(wiring, run_id, person("root"), f" {WHY} ")
    assert (erasure.by.id, erasure.reason, erasure.seq) == ("root", WHY, len(before) + 1)
    assert find_contents(clean_store_url) == []
    trail = await wiring.runs.trail(run_id)
    assert [one.hash for one in trail[:-1]] == [one.hash for one in before]
    assert find_break(trail) is None
    assert (await wiring.trails.find_end(run_id)).fault == ""
    last = trail[-1]
    assert (last.type, last.data["by"]["id"], last.data["reason"]) == (EventType.CONTENTS_ERASED, "root", WHY)
    assert [one async for one in diagnose(wiring) if not one.ok and "trail" in one.message] == []


async def test_decisions_remain_after_an_erasure(world: World) -> None:
    wiring = world.wiring
    ended = await make_ended(wiring)
    erasure = await erase_run(wiring, ended.run.id, person("root"), WHY)
    record = (await wiring.desk.suspensions.read(ended.id)).record
    (item,), (was,) = record.items, ended.items
    assert record.erasure == item.erasure == erasure
    assert (record.version, record.updated_at_ms) == (ended.version + 1, ended.updated_at_ms)
    assert (item.tool.name, item.tool.args, item.digest, item.terms) == (was.tool.name, {}, was.digest, was.terms)
    (decision,) = item.decisions
    assert (decision.by.id, decision.action, decision.at_ms) == ("anna", "approve", was.decisions[0].at_ms)
    assert item.outcome is not None
    assert was.outcome is not None
    assert (item.outcome.verdict, item.outcome.by, item.outcome.digest) == ("approved", was.outcome.by, was.digest)
    kept = [one for one in await wiring.runs.trail(ended.run.id) if one.type == EventType.DECISION_RECORDED]
    assert (kept[0].erased_by, kept[0].data["verdict"], kept[0].data["rule_id"]) == (erasure.seq, "approved", "refunds")
    assert (kept[0].data["rule_version"], kept[0].data["by"]["id"], "args" in kept[0].data) == ("v1", "anna", False)


async def test_erasing_again_returns_the_first_erasure(world: World) -> None:
    ended = await make_ended(world.wiring)
    both = await asyncio.gather(*(erase_run(world.wiring, ended.run.id, person(one), WHY) for one in ("root", "anna")))
    assert both[0] == both[1]
    assert await erase_run(world.wiring, ended.run.id, person("ben"), "again") == both[0]
    erasures = [one for one in await world.wiring.runs.trail(ended.run.id) if one.type == EventType.CONTENTS_ERASED]
    assert len(erasures) == 1


async def test_run_that_may_go_on_is_not_erased(world: World, clean_store_url: str) -> None:
    wiring = world.wiring
    for record in (await make_pending(wiring), await approve(wiring, await make_pending(wiring))):
        with pytest.raises(Conflict, match="has not ended"):
            await erase_run(wiring, record.run.id, person("root"), WHY)
        assert (await wiring.desk.suspensions.read(record.id)).record == record
    with pytest.raises(NotFound):
        await erase_run(wiring, "run_unknown", person("root"), WHY)
    given_up = await give_up(wiring, await approve(wiring, await make_pending(wiring)))
    await erase_run(wiring, given_up.run.id, person("root"), WHY)
    with pytest.raises(Conflict, match="were erased"):
        await wiring.desk.revive(given_up.id, person("root"))


async def test_altered_trail_is_not_erased(world: World, clean_store_url: str) -> None:
    """An erasure would keep the hash of the altered event, and hide that it does not fit."""
    ended = await make_ended(world.wiring)
    key = KEYS.trail(ended.run.id)
    with Redis.from_url(clean_store_url) as store:
        second: Any = store.lindex(key, 1)
        store.lset(
            key, 1, second.replace(b'"anna"', b'"emma"') if b'"anna"' in second else second.replace(b"r", b"q", 9)
        )
    with pytest.raises(Conflict, match="was altered at event 2"):
        await erase_run(world.wiring, ended.run.id, person("root"), WHY)
    with Redis.from_url(clean_store_url) as store:
        store.lset(key, 1, second)
        store.rpop(key)
    with pytest.raises(Conflict, match="was altered at its end"):
        await erase_run(world.wiring, ended.run.id, person("root"), WHY)


async def test_trail_of_a_deleted_run_is_erased(world: World, clean_store_url: str) -> None:
    wiring = world.wiring
    ended = await make_ended(wiring)
    assert await wiring.retention.forget_runs(2**53, 10, 2**53) == 1
    assert {one.split(":")[2] for one in find_contents(clean_store_url)} >= {"e", "comments"}
    erasure = await erase_run(wiring, ended.run.id, person("root"), WHY)
    assert find_contents(clean_store_url) == []
    trail = await wiring.runs.trail(ended.run.id)
    assert find_break(trail) is None
    assert (await wiring.trails.find_end(ended.run.id)).fault == ""
    assert trail[-1].seq == erasure.seq
    assert await erase_run(wiring, ended.run.id, person("anna"), "again") == erasure


async def test_all_suspensions_of_a_run_are_erased(world: World, clean_store_url: str) -> None:
    wiring = world.wiring
    first = await approve(wiring, await make_pending(wiring, ask(to=MARK)))
    leased = (await wiring.desk.lease(first.id, "worker-1", 30_000)).record
    assert leased.lease is not None
    fence = Fence(holder="worker-1", attempt=leased.lease.attempt, lease_ms=30_000)
    state = seal_state(MARK.encode())
    following = (await wiring.desk.suspend_again(leased, fence, (ask(to=MARK),), state, (), 2)).following
    assert following is not None
    await finish(wiring, await approve(wiring, following))
    erasure = await erase_run(wiring, first.run.id, person("root"), WHY)
    assert find_contents(clean_store_url) == []
    for record in await wiring.desk.suspensions.read_many([first.id, following.id]):
        assert record.erasure == erasure


async def test_messages_and_replays_that_may_quote_the_run_are_deleted(world: World, clean_store_url: str) -> None:
    wiring = world.wiring
    await add_endpoint(wiring)
    ended, other = await make_ended(wiring), await make_pending(wiring)
    await FanOut(wiring).announce_due()
    assert "delivery" in {one.split(":")[2] for one in find_contents(clean_store_url)}
    now_ms = await wiring.schedule.now_ms()
    replay = Replay(id="rpl_1", by="root", file="a", version="v", from_ms=0, to_ms=1, started_at_ms=1, updated_at_ms=1)
    await wiring.part(ReplayStore).create(replay)
    await erase_run(wiring, ended.run.id, person("root"), WHY)
    assert find_contents(clean_store_url) == []
    assert await wiring.part(ReplayStore).list_all(now_ms) == []
    left = find_contents(clean_store_url, other.id)
    assert any(":delivery:" in one for one in left), "messages about other runs are still sent"


async def test_record_that_says_erased_and_holds_a_call_is_unreadable(world: World) -> None:
    ended = await make_ended(world.wiring)
    await erase_run(world.wiring, ended.run.id, person("root"), WHY)
    erased = (await world.wiring.desk.suspensions.read(ended.id)).record
    end = await world.wiring.trails.find_end(ended.run.id)
    (item,) = erased.items
    forged = item.model_copy(update={"tool": item.tool.model_copy(update={"args": {"amount": 1}})})
    for update in ({"items": (forged,)}, {"status": Status.DECIDED}, {"erasure": None}):
        altered = SuspensionRecord.model_validate(erased.model_copy(update=update).model_dump())
        with pytest.raises(Unreadable, match="was altered"):
            unpack_record(pack_record(altered, end.actual, "c", CLEAR))
