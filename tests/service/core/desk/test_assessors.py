"""Calls are assessed when they are asked, once; the answer is kept with the judgement, and replays see the same."""

from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.records.judgements import Level
from sayso.features.whatif.reevaluation import list_calls, rejudge
from service.core.settings import Settings
from tests.service.worlds import World

POLICY = """
version: 1
default: deny
rules:
  - id: large
    priority: 200
    tool: refund
    when: args.amount > 100
    action: request_approval
    assess: {by: fraud, medium: {quorum: 2}, high: {quorum: 2, match_number: true}}
  - {id: small, tool: refund, action: allow, assess: {by: fraud, medium: {}, high: {reason: Look at the account.}}}
  - {id: free, tool: look, action: allow}
  - {id: gone, tool: pay, action: allow, assess: {by: unknown, high: {}}}
"""
ASKED: list[dict[str, Any]] = []


def rate(call: dict[str, Any]) -> dict[str, Any]:
    ASKED.append(call)
    amount = call["args"]["amount"]
    return {"score": amount % 100 / 100, "reason": f"<b>score</b> of {amount}"}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    ASKED.clear()
    policy, assessors = tmp_path / "policy.yaml", tmp_path / "assessors.yaml"
    policy.write_text(POLICY)
    assessors.write_text(f"assessors: {{fraud: {{function: '{__name__}:rate', timeout_s: 10}}}}")
    return Settings(redis_url=clean_store_url, policy=policy, assessors=assessors)


async def suspend(world: World, amount: int, tool: str = "refund") -> dict[str, Any]:
    async with world.client("demo") as demo:
        call = {"tool": tool, "args": {"order": "A-1", "amount": amount}, "definition": {}}
        found = await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})
        return dict(found.json())


async def decide(world: World, found: dict[str, Any], who: str, **body: Any) -> Any:
    async with world.client(who) as person:
        sent = {"action": "approve", "digest": found["items"][0]["digest"], **body}
        return await person.post(f"/api/v1/suspensions/{found['id']}/items/i1/decision", json=sent)


@pytest.mark.parametrize(
    ("amount", "verdict", "level"), [(10, "approved", None), (60, None, "medium"), (90, None, "high")]
)
async def test_allowed_call_is_asked_at_a_named_level(
    world: World, amount: int, verdict: str | None, level: str | None
) -> None:
    (item,) = (await suspend(world, amount))["items"]
    assert (item["outcome"] and item["outcome"]["verdict"]) == verdict
    if level is not None:
        assert (item["assessment"]["level"], item["assessment"]["score"]) == (level, amount / 100)
        assert f"The assessor fraud rates this call {level}." in item["prompt"]["reason"]
    assert len(ASKED) == 1
    assert (ASKED[0]["tool"], ASKED[0]["rule"], ASKED[0]["agent"]) == ("refund", "small", "demo")


async def test_call_that_nobody_asks_is_not_assessed(world: World) -> None:
    await suspend(world, 5, "look")
    await suspend(world, 5, "delete")
    assert ASKED == []


async def test_missing_assessor_counts_as_high(world: World) -> None:
    (item,) = (await suspend(world, 5, "pay"))["items"]
    assert (item["outcome"], item["assessment"]["level"]) == (None, "high")
    assert "SAYSO_ASSESSORS" in item["assessment"]["fault"]


async def test_start_of_an_approved_call_asks_nobody_again(world: World) -> None:
    found = await suspend(world, 110)
    assert (await decide(world, found, "anna")).is_success
    async with world.client("demo") as demo:
        redeemed = await demo.post(
            f"/api/v1/suspensions/{found['id']}/items/i1/redeem", headers={"Idempotency-Key": "k"}, json={}
        )
        assert redeemed.is_success, redeemed.text
    assert len(ASKED) == 1


async def test_edited_call_is_assessed_again_and_never_with_less(world: World) -> None:
    found = await suspend(world, 110)
    async with world.client("anna") as anna:
        item = (await anna.get(f"/api/v1/suspensions/{found['id']}")).json()["items"][0]
    assert (item["terms"]["quorum"]["approve"], item["assessment"]["level"]) == (1, "low")
    edited = await decide(world, found, "anna", args={"order": "A-1", "amount": 190})
    assert len(ASKED) == 2
    assert edited.is_success, edited.text
    async with world.client("anna") as anna:
        item = (await anna.get(f"/api/v1/suspensions/{found['id']}")).json()["items"][0]
    assert (item["outcome"], item["terms"]["quorum"]["approve"], item["assessment"]["level"]) == (None, 2, "high")


async def test_replay_sees_the_recorded_answer(world: World) -> None:
    wiring = world.wiring
    runs = [(await suspend(world, amount))["run"]["id"] for amount in (10, 60, 90, 110, 160)]
    asked = len(ASKED)
    policy = parse_rulebook(POLICY.encode(), file="policy.yaml")
    other = parse_rulebook(POLICY.replace("by: fraud", "by: other").encode(), file="policy.yaml")
    for run in runs:
        record = (await wiring.desk.suspensions.read((await wiring.runs.read(run)).suspension_id)).record
        calls = list_calls(record.run, await wiring.runs.trail(run), {record.id: record})
        (again,) = rejudge(policy, calls, {})
        assert again is not None
        assert again.approvals == record.items[0].terms.quorum.approve
        assert again.error is None
        assert (again.effect == "allowed") == (calls[0].action == "allow")
        assert list(rejudge(other, calls, {})) == [None], "the other assessor was not asked then"
    assert len(ASKED) == asked


async def test_trail_keeps_the_answer_beside_the_verdict(world: World) -> None:
    found = await suspend(world, 110)
    await decide(world, found, "anna", message="fine")
    trail = await world.wiring.runs.trail(found["run"]["id"])
    (judged,) = (entry.data for entry in trail if entry.type == "policy_decision")
    assert (judged["assessment"]["level"], judged["assessment"]["score"]) == (Level.LOW, 0.1)
    assert [entry.data["verdict"] for entry in trail if entry.type == "decision_recorded"] == ["approved"]
