"""Near misses of rules, compared with a recount of what the trails recorded."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.control.store import Recents
from service.features.insights.figures import read_insights
from tests.builders import make_agent
from tests.service.worlds import World
from workers.outbox import Counting

POLICY = """
version: 1
default: request_approval
rules:
  - {id: burst, priority: 300, tool: pay, over: {limit: {count: 3, per: 1h, by: [args.who]}}, action: deny}
  - {id: trial, priority: 250, tool: pay, when: args.amount > 60, action: deny, mode: shadow}
  - {id: trusted, priority: 200, tool: pay, when: args.who == "z", action: allow}
  - {id: small, tool: pay, budget: {sum: args.amount, max: 200, per: 1h, by: [args.who]}, action: allow}
"""
CALL = st.tuples(st.sampled_from("abz"), st.integers(min_value=1, max_value=100))
MOST = {"over.limit": 3, "budget": 200}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, pending_per_key=1_000)


async def pay(world: World, who: str, *amounts: int) -> dict[str, Any]:
    calls = [{"tool": "pay", "args": {"who": who, "amount": one}, "definition": {}} for one in amounts]
    async with world.client("demo") as demo:
        return dict((await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": calls})).json())


async def count_near(wiring: Wiring) -> Counter[str]:
    await Counting(wiring).count_waiting()
    rules = (await read_insights(wiring, "24h", None)).rules
    return +Counter({one.rule: one.near for one in rules})


async def recount(wiring: Wiring, runs: list[str]) -> Counter[str]:
    """Count from arguments and verdicts alone, with counters of its own."""
    found: Counter[str] = Counter()
    made: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    for run in runs:
        for entry in await wiring.runs.trail(run):
            if entry.type != "policy_decision" or entry.data["action"] != "allow":
                continue
            who, amount = entry.data["args"]["who"], entry.data["args"]["amount"]
            made[who] += 1
            spent[who] += amount if who != "z" else 0
            if made[who] + 1 > 3:
                found["burst"] += 1
            elif who != "z" and spent[who] + amount > 200:
                found["small"] += 1
            found["trial"] += amount > 60
    return +found


@examples(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(CALL, max_size=14))
async def test_near_misses_are_those_of_a_recount(world: World, calls: list[tuple[str, int]]) -> None:
    await world.wiring.part(Recents).second_look._redis.flushdb()
    world.tokens["demo"] = await make_agent(world.wiring, "demo")
    runs = [(await pay(world, who, amount))["run"]["id"] for who, amount in calls]
    assert await count_near(world.wiring) == await recount(world.wiring, runs)


async def test_calls_of_one_batch_count_for_each_other(world: World) -> None:
    run = (await pay(world, "a", 10, 10, 10))["run"]["id"]
    events = [one.data.get("near_miss") for one in await world.wiring.runs.trail(run) if one.type == "policy_decision"]
    assert events == [None, None, "burst"]


async def test_limit_below_another_allowing_rule_is_no_near_miss(world: World) -> None:
    await pay(world, "z", 60)
    await pay(world, "z", 60)
    assert await count_near(world.wiring) == Counter()
