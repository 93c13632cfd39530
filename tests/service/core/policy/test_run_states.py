"""Runs of other frameworks are paused over HTTP: their state is taken if a worker could go on from it, and sealed."""

import base64
import json
from typing import Any

import pytest
from httpx import Response

from sayso.core.records.suspensions import Origin
from sayso.runner.protocol import FrameworkState
from tests.builders import register_agent
from tests.service.worlds import World

CALL = {"tool": "refund", "args": {"order": "A-1", "amount": 250.5}, "call_id": "c1"}
DIGEST = "d" * 64


def encode(state: Any) -> str:
    return base64.b64encode(state if isinstance(state, bytes) else json.dumps(state).encode()).decode()


async def pause(world: World, state: Any, **changed: Any) -> Response:
    """Register an agent of a framework, and ask for a call of its run that waits for it."""
    manifest = await register_agent(world.wiring, "bot")
    origin = Origin(framework="autogen", state_schema="autogen.state/1", manifest_digest=DIGEST)
    with_origin = manifest.model_copy(update={"origin": origin})
    await world.wiring.runs.save_agent("bot", with_origin.model_dump_json())
    return await suspend_run(world, state, **changed)


async def suspend_run(world: World, state: Any, **changed: Any) -> Response:
    """Ask for a call of a run of the registered agent."""
    paused = {
        "framework": "autogen",
        "state_schema": "autogen.state/1",
        "manifest_digest": DIGEST,
        "state": state if isinstance(state, str) else encode(state),
        **changed,
    }
    async with world.client("demo") as client:
        return await client.post("/api/v1/suspensions", json={"agent": "bot", "calls": [CALL], "framework_run": paused})


async def test_suspended_run_waits_with_its_state(world: World) -> None:
    answer = await pause(world, {"messages": ["x" * 1024 * 1024]})
    assert answer.status_code == 201, answer.text
    record = (await world.wiring.desk.suspensions.read(answer.json()["id"])).record
    assert record is not None
    assert record.state is not None
    assert (record.resume.resumer, record.origin.framework) == ("autogen", "autogen")
    kept = FrameworkState.model_validate_json(await world.wiring.runs.state(record.run.id, record.state))
    assert kept.native == {"messages": ["x" * 1024 * 1024]}


@pytest.mark.parametrize(
    ("state", "changed", "status", "detail"),
    [
        (b'{"messages": [{"content": NaN}]}', {}, 400, "$.messages[0].content is not a finite number"),
        (b"[]", {}, 400, "is a list, not a JSON object"),
        ("not base64!", {}, 422, "is not base64"),
        ({"a": "x" * 4 * 1024 * 1024}, {}, 413, "the limit is 4194304"),
        ({}, {"framework": "langgraph"}, 409, "needs autogen"),
        ({}, {"state_schema": "autogen.state/0"}, 409, "needs autogen"),
        ({}, {"manifest_digest": "e" * 64}, 409, "Deploy the same version"),
    ],
)
async def test_a_state_that_no_worker_could_go_on_from_is_refused(
    world: World, state: Any, changed: dict[str, str], status: int, detail: str
) -> None:
    answer = await pause(world, state, **changed)
    assert (answer.status_code, detail in answer.json()["detail"]) == (status, True), answer.text


async def test_runner_agent_cannot_be_suspended_by_another_process(world: World) -> None:
    paused = {"framework": "sayso", "state_schema": "x", "manifest_digest": DIGEST, "state": encode({})}
    async with world.client("demo") as client:
        answer = await client.post(
            "/api/v1/suspensions", json={"agent": "demo", "calls": [CALL], "framework_run": paused}
        )
    assert answer.status_code == 422


async def test_other_bodies_stay_small(world: World) -> None:
    async with world.client("demo") as client:
        answer = await client.post("/api/v1/runs", json={"agent": "demo", "input": "x" * 400_000})
    assert answer.status_code == 413
