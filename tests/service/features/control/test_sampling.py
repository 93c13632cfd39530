"""The draw of a desk uses one secret of the store, and a drawn item needs a second person."""

from typing import Literal

from redis.asyncio import Redis

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import ResumeSpec, Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.sampling import Sampling, draw_samples
from service.core.wiring import Wiring
from tests.builders import REFUND, ask, person, run_ref, store_of

SAMPLED = RuleTerms.model_validate({"sample": {"before": 0.5}})
ALWAYS = RuleTerms.model_validate({"sample": {"before": 1}})
KEYS = TenantKeys(TENANT)


async def suspend(wiring: Wiring, terms: RuleTerms) -> SuspensionRecord:
    await wiring.runs.save_definitions([REFUND])
    return await suspend_call(wiring, terms, {"order": new_id("ord"), "amount": 5})


async def suspend_call(wiring: Wiring, terms: RuleTerms, args: JsonObject) -> SuspensionRecord:
    await wiring.runs.save_definitions([REFUND])
    draft = ask(terms=terms)
    draft = draft.model_copy(update={"tool": draft.tool.model_copy(update={"args": args})})
    return (await wiring.desk.plant(run_ref(), draft)).record


async def decide(wiring: Wiring, record: SuspensionRecord, by: str) -> SuspensionRecord:
    action: Literal["approve"] = "approve"
    request = DecisionRequest(action=action, digest=record.items[0].digest)
    return (await wiring.desk.decide(record.id, "i1", request, person(by))).record


async def test_drawn_items_are_those_of_the_stored_secret(wiring: Wiring, redis: Redis) -> None:
    records = [await suspend(wiring, SAMPLED) for _ in range(40)]
    secret = await redis.get(KEYS.sampling)
    assert isinstance(secret, bytes)
    for record in records:
        draft = ask(terms=SAMPLED).model_copy(update={"tool": record.items[0].tool})
        (expected,) = draw_samples((draft,), secret, (TENANT, record.run.owner, record.run.agent))
        assert (record.items[0].drawn, record.items[0].terms.quorum) == (expected.drawn, expected.terms.quorum)
    assert {bool(record.items[0].drawn) for record in records} == {True, False}


async def test_call_that_is_asked_again_is_drawn_again(wiring: Wiring) -> None:
    drawn = {
        order: {bool((await suspend_call(wiring, SAMPLED, {"order": order})).items[0].drawn) for _ in range(5)}
        for order in map(str, range(12))
    }
    assert all(len(found) == 1 for found in drawn.values()), drawn
    assert {found.pop() for found in drawn.values()} == {True, False}


async def test_drawn_item_needs_a_second_person(wiring: Wiring) -> None:
    record = await suspend(wiring, ALWAYS)
    assert record.resume == ResumeSpec(mode="poll")
    assert (await decide(wiring, record, "anna")).status is Status.PENDING
    assert (await decide(wiring, record, "ben")).status is Status.DECIDED
    trail = await wiring.runs.trail(record.run.id)
    assert record.items[0].drawn
    assert record.items[0].drawn not in repr(trail), "agents read their trails"


async def test_secret_is_made_once_for_all_processes(wiring: Wiring, redis: Redis) -> None:
    first, second = Sampling(store_of(redis)), Sampling(store_of(redis))
    drafts = (ask(terms=SAMPLED),)
    for at in range(8):
        run = run_ref(f"bot-{at}")
        assert await first.draw(drafts, run) == await second.draw(drafts, run)
        assert await first.draw(drafts, run) == await wiring.desk.suspensions.sampling.draw(drafts, run)


async def test_no_secret_is_made_without_a_sample(wiring: Wiring, redis: Redis) -> None:
    await suspend(wiring, RuleTerms())
    assert not await redis.exists(KEYS.sampling)
