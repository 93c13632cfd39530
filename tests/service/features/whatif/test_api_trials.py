"""Which rule decides a call, over the API and with the client."""

from typing import Any

from sayso.client import administration
from sayso.core.records.terms import RuleTerms
from sayso.wire.administration import Explained
from tests.builders import ask, make_pending, register_agent
from tests.service.worlds import World

RULES = """\
version: 1
default: request_approval
rules:
  - {id: large, tool: refund, when: args.amount > 100, action: deny}
  - {id: prod, tool: refund, context: {equals: {env: prod}}, action: allow}
  - {id: nights, tool: refund, outside: {hours: "08:00-18:00", zone: UTC}, action: deny}
"""


async def explain(world: World, who: str = "anna", status: int = 200, **body: Any) -> Any:
    world.wiring.settings.policy.write_text(RULES)
    async with world.client(who) as client:
        answer = await client.post("/api/v1/policy/explain", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_explain_says_what_each_rule_saw(world: World) -> None:
    call = {"tool": "refund", "args": {"amount": 5}, "at": "2026-12-01T19:00Z"}
    explained = Explained.model_validate(await explain(world, call=call))
    assert (explained.action, explained.rule_id, explained.absolute) == ("deny", "nights", False)
    assert [(rule.rule_id, rule.match, rule.part) for rule in explained.rules] == [
        ("large", "differs", "when"),
        ("nights", "decides", ""),
        ("prod", "differs", "context"),
    ]
    assert explained.rules[0].saw == {"amount": 5}
    assert explained.rules[1].sentence == "Decides. Here now is Tue 2026-12-01 19:00 UTC."
    assert await world.wiring.rules.count_hits(1) == {}


async def test_explain_uses_the_context_of_a_registered_agent(world: World) -> None:
    await register_agent(world.wiring, "support", context={"env": "prod"})
    call = {"tool": "refund", "agent": "support", "context": {"env": "test"}, "at": "2026-12-01T12:00Z"}
    found = await explain(world, call={**call, "args": {"amount": 5}})
    assert (found["action"], found["rule_id"]) == ("allow", "prod")


async def test_explain_tries_the_call_of_an_item_and_masks_secrets(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=RuleTerms(secrets=("amount",))))
    for item in (record.id, f"{record.id}/i1"):
        found = await explain(world, item=item)
        assert found["rules"][0]["saw"] == {"amount": "[secret]"}
    changed = {"tool": "refund", "agent": record.run.agent, "args": {"order": "A", "amount": 900}}
    assert (await explain(world, item=record.id, call=changed))["rule_id"] == "large"


async def test_explain_is_for_people_and_needs_something_to_try(world: World) -> None:
    call = {"tool": "refund"}
    await explain(world, "demo", 403, call=call)
    assert "nothing to try" in (await explain(world, status=422))["detail"]
    await explain(world, status=404, item="sus_none")
    await explain(world, status=422, call={"tool": ""})
    await explain(world, status=422, call={**call, "at": "tomorrow"})


async def test_explain_of_a_call_without_a_rule(world: World) -> None:
    found = await explain(world, call={"tool": "other"})
    assert (found["rule_id"], found["action"]) == (None, "request_approval")


def test_client_asks_to_explain_a_call() -> None:
    request = administration.explain_call({"tool": "refund"})
    assert (request.path, request.body) == ("/api/v1/policy/explain", {"call": {"tool": "refund"}})
    assert administration.explain_call(None, "sus_1/i1").body == {"item": "sus_1/i1"}
