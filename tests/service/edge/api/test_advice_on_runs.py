"""Advice on runs that only a failure, an erasure, a clock or chance brings about: each is followed."""

from pathlib import Path

import pytest
from httpx import Response
from redis.asyncio import Redis

from sayso.core.records.terms import RuleTerms
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from tests.builders import approve, ask, give_up, make_pending
from tests.service.edge.api.advice.steps import Step, call, decide, send
from tests.service.edge.api.advice.steps import ask as suspend
from tests.service.worlds import World
from workers.clock.ticks import wake_unfrozen
from workers.outbox import Counting

POLICY = """
version: 1
default: request_approval
rules:
  - {id: seen, tool: look, action: allow, terms: {reviewers: [anna, ben], sample: {after: 1}}}
  - {id: large, tool: refund, when: args.amount > 100, action: request_approval}
"""
SECOND = "sayso/core/transitions/second_look.py"
FOLLOWED = [
    (SECOND, "Add what was wrong with this call"),
    (SECOND, "Ask one of them"),
    (SECOND, "Shorten it to"),
    ("sayso/core/policy/external.py", "Approve the original arguments, or deny the item"),
    ("sayso/core/transitions/execution.py", "Start a new run"),
    ("sayso/core/transitions/freezing.py", "Decide it after an admin has confirmed the clock"),
]
"""Advice that these tests follow; that of a long reason is followed on the page of second looks."""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy)


def refuses(answer: Response, advice: str) -> bool:
    return answer.status_code in (403, 409, 422) and advice in answer.json()["detail"]


async def draw(world: World) -> str:
    """Return the place of a second look that waits."""
    assert (await send(world, suspend(call("look")))).is_success
    await Counting(world.wiring).count_waiting()
    (waiting,) = (await send(world, Step("anna", "GET", "second-looks"))).json()["calls"]
    return f"second-looks/{waiting['run_id']}/{waiting['seq']}"


async def test_advice_on_a_second_look_leads_to_one(world: World) -> None:
    place = await draw(world)
    stranger = await send(world, Step("root", "POST", place, {"opinion": "agree"}))
    assert refuses(stranger, "Only anna, ben can take this second look. Ask one of them"), stranger.text
    bare = await send(world, Step("anna", "POST", place, {"opinion": "disagree"}))
    assert refuses(bare, "Add what was wrong with this call"), bare.text
    taken = await send(world, Step("anna", "POST", place, {"opinion": "disagree", "reason": "Nobody asked for it."}))
    assert taken.is_success, taken.text


async def test_advice_on_an_unknown_definition_leads_to_an_approval(world: World, clean_store_url: str) -> None:
    kept: dict[str, str] = {}
    assert (await send(world, suspend(call("refund", amount=5)), kept)).is_success
    async with Redis.from_url(clean_store_url) as store:
        await store.delete(TenantKeys(TENANT).definitions)
    refused = await send(world, decide("anna", args={"amount": 500}), kept)
    assert refuses(refused, "Approve the original arguments, or deny the item"), refused.text
    assert (await send(world, decide("anna"), kept)).is_success


async def test_advice_on_an_erased_run_leads_to_a_new_one(world: World) -> None:
    failed = await give_up(world.wiring, await approve(world.wiring, await make_pending(world.wiring)))
    run = f"runs/{failed.run.id}"
    assert (await send(world, Step("root", "POST", f"{run}/erase", {"reason": "Request of the customer"}))).is_success
    refused = await send(world, Step("root", "POST", f"{run}/revive"))
    assert refuses(refused, "Start a new run"), refused.text
    assert (await send(world, Step("demo", "POST", "runs", {"agent": "demo", "input": "Refund A-1"}))).is_success


async def test_advice_on_a_doubted_clock_leads_to_a_decision(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=RuleTerms(timeout_s=1)), late_ms=5_000)
    now_ms = await world.wiring.schedule.now_ms()
    made = await world.wiring.freezes.doubt_time(now_ms - 4_500, now_ms)
    kept = {"suspension": record.id, "digest": record.items[0].digest}
    refused = await send(world, decide("anna"), kept)
    assert refuses(refused, "Decide it after an admin has confirmed the clock"), refused.text
    assert (await send(world, Step("root", "POST", f"freezes/{made.id}/unfreeze", {"deadlines": "move"}))).is_success
    await wake_unfrozen(world.wiring)
    found = await send(world, Step("anna", "GET", f"suspensions/{record.id}", keep={"digest": "items.0.digest"}), kept)
    assert found.is_success, found.text
    decided = await send(world, decide("anna"), kept)
    assert decided.is_success, decided.text
