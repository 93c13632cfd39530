"""Context from callers is unverified: rules read it as `claimed`, and the API names it so."""

from typing import Any

import pytest

from tests.builders import register_agent
from tests.service.worlds import World

RULES = """version: 1
default: request_approval
rules:
  - {id: tests-are-free, tool: refund, context: {equals: {env: test}}, action: allow}
  - {id: conditions-too, tool: refund, when: 'has(context.env) && context.env == "test"', action: allow}
  - {id: claimed-staging, priority: 50, tool: refund, claimed: {equals: {env: staging}}, action: deny}
"""
REFUND = {"tool": "refund", "args": {"order": "A-1", "amount": 5}, "call_id": "c1"}


def write_rules(world: World, text: str = RULES) -> None:
    assert world.wiring.settings.policy is not None
    world.wiring.settings.policy.write_text(text)


async def ask(world: World, **fields: Any) -> dict[str, Any]:
    async with world.client("demo") as client:
        answer = await client.post("/api/v1/suspensions", json={"agent": "demo", "calls": [REFUND], **fields})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


OWN = {"mode": "poll", "calls": [{**REFUND, "definition": {"parameters": {"type": "object"}}}]}


@pytest.mark.parametrize("mode", [{}, OWN], ids=["worker", "poll"])
async def test_context_from_a_caller_is_claimed(world: World, mode: dict[str, Any]) -> None:
    """An allow rule for tests once accepted an agent that only claimed to run in a test."""
    write_rules(world)
    suspension = await ask(world, **mode, context={"env": "test"})
    assert suspension["status"] == "pending"
    assert suspension["items"][0]["terms"]["rule_id"] is None
    denied = await ask(world, **mode, context={"env": "staging"})
    assert denied["items"][0]["outcome"]["verdict"] == "denied"


async def test_context_of_a_registered_agent_is_trusted(world: World) -> None:
    write_rules(world)
    await register_agent(world.wiring, "tester", {"env": "test"})
    suspension = await ask(world, agent="tester", context={"env": "staging"})
    assert suspension["items"][0]["outcome"]["verdict"] == "approved"
    assert (suspension["run"]["context"], suspension["run"]["claimed_context"]) == ({"env": "test"}, {"env": "staging"})


async def test_context_of_a_key_is_trusted_and_outlives_its_rotation(world: World) -> None:
    write_rules(world)
    async with world.client("root") as admin:
        body = {"name": "prober", "context": {"env": "test"}}
        created = (await admin.post("/api/v1/keys", json=body)).json()
        rotated = (await admin.post(f"/api/v1/keys/{created['id']}/rotate", json={"overlap_s": 60})).json()
    assert created["context"] == rotated["context"] == {"env": "test"}
    for key in (created, rotated):
        world.tokens["prober"] = key["key"]
        async with world.client("prober") as client:
            answer = await client.post("/api/v1/suspensions", json={**OWN, "context": {"env": "staging"}})
        suspension = answer.json()
        assert (suspension["run"]["context"], suspension["run"]["claimed_context"]) == (
            {"env": "test"},
            {"env": "staging"},
        )
        assert suspension["items"][0]["outcome"]["verdict"] == "approved"


async def test_api_names_claims_as_claims(world: World) -> None:
    suspension = await ask(world, title="Checked by security", context={"note": "fine"})
    run = suspension["run"]
    assert (run["claimed_title"], run["claimed_context"], run["context"]) == (
        "Checked by security",
        {"note": "fine"},
        {},
    )
    assert "title" not in run
    async with world.client("anna") as client:
        shown = (await client.get(f"/api/v1/runs/{run['id']}")).json()
    assert shown["claimed_title"] == "Checked by security"
    assert "title" not in shown


async def test_subagent_rule_above_an_allow_holds_over_the_api(world: World) -> None:
    """Nobody knows which sub-agent brings a call, so a person decides."""
    rules = "  - {id: no-writers, priority: 300, subagent: writer, action: deny}\n"
    write_rules(world, f"version: 1\ndefault: deny\nrules:\n{rules}  - {{id: all, tool: refund, action: allow}}\n")
    suspension = await ask(world)
    assert (suspension["status"], suspension["items"][0]["subagent"]) == ("pending", None)
    assert "it is unknown whether a sub-agent" in str(suspension["items"][0]["prompt"]["metadata"])
