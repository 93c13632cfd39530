"""Rules are checked against what the desk knows: over the API, by the doctor, and in the log at start."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from service.app import create_app
from service.core.settings import Settings
from service.features.operate.diagnostics import diagnose
from tests.builders import make_person, register_agent
from tests.service.worlds import World
from tests.waits import until

DOUBTFUL = """version: 1
default: request_approval
rules:
  - id: refunds
    tool: [refund, refund_all]
    when: args.amuont > 100
    action: request_approval
    terms: {reviewers: [anna, dora, eve], quorum: {approve: 2}}
  - {id: zero, tool: refund, when: args.amuont > 100, action: deny}
"""
WARNINGS = [
    "rule zero: never decides, because rule refunds is tried first",
    "rule refunds: there is no reviewer 'dora'",
    "rule refunds: the reviewer 'eve' is deactivated",
    "rule refunds: 2 must approve, but only 1 of the reviewers can decide",
    "rule refunds: when: refund has no argument 'amuont' (did you mean 'amount'?)",
    "rule zero: when: refund has no argument 'amuont' (did you mean 'amount'?)",
]


async def make_eve(world: World) -> None:
    """Make a reviewer who is shut out."""
    await make_person(world.wiring, "eve")
    await world.wiring.reviewers.deactivate("eve")


async def check(world: World, who: str) -> dict[str, Any]:
    async with world.client(who) as client:
        answer = await client.post("/api/v1/policy/check", json={"text": DOUBTFUL})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


async def test_check_of_rules_warns_of_people_and_arguments_nobody_knows(world: World) -> None:
    await make_eve(world)
    found = await check(world, "anna")
    assert (found["ok"], found["faults"], found["rules"]) == (True, [], 2)
    assert [one for one, start in zip(found["warnings"], WARNINGS, strict=True) if not one.startswith(start)] == []


async def test_check_of_rules_hides_reviewers_from_agents(world: World) -> None:
    found = await check(world, "demo")
    assert len(found["warnings"]) == 1
    assert found["warnings"][0].startswith(WARNINGS[0])


async def test_check_of_rules_knows_the_groups(world: World) -> None:
    await world.wiring.groups.create("payments", ("anna",), (), "root")
    text = DOUBTFUL.replace("[anna, dora, eve]", "['group:payments', 'group:ops']")
    async with world.client("anna") as client:
        found = (await client.post("/api/v1/policy/check", json={"text": text})).json()
    told = [one for one in found["warnings"] if "group" in one or "approve" in one]
    assert told == [
        "rule refunds: there is no group 'ops'; create it, or correct the name",
        "rule refunds: 2 must approve, but only 1 of the reviewers can decide; add reviewers, or lower quorum.approve",
    ]


async def test_doctor_reports_unusable_rules_in_force(world: World) -> None:
    await make_eve(world)
    assert world.wiring.settings.policy is not None
    world.wiring.settings.policy.write_text(DOUBTFUL)
    reported = [one for one in [one async for one in diagnose(world.wiring)] if one.part == "rules"]
    assert [one.ok for one in reported] == [True] + [False] * len(WARNINGS)
    pairs = zip(reported[1:], WARNINGS, strict=True)
    assert [one.message for one, start in pairs if not one.message.startswith(start)] == []
    assert all(one.todo for one in reported[1:])


@pytest.mark.usefixtures("world")
async def test_start_logs_rules_that_cannot_work(settings: Settings) -> None:
    assert settings.policy is not None
    settings.policy.write_text(DOUBTFUL)
    app = create_app(settings)
    with capture_logs() as logs:
        async with app.router.lifespan_context(app):
            await register_agent(app.state.process.wiring)

            async def reported() -> bool:
                return any("there is no reviewer 'dora'" in one.get("message", "") for one in logs)

            await until(reported)
    assert {one["event"] for one in logs if "rule refunds" in one.get("message", "")} == {"rules_doubtful"}
