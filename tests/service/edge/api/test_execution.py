"""Calls that their owner runs, over HTTP: decided, redeemed once, reported."""

from typing import Any

import pytest
from httpx import Response

from service.core.wiring import Wiring
from tests.service.worlds import World
from workers.clock.ticks import process_due

DEFINITION = {
    "description": "Pay a customer back.",
    "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
}
CALL: dict[str, Any] = {"tool": "pay_back", "args": {"order": "A-1"}, "definition": DEFINITION}


async def ask(world: World, *calls: dict[str, Any], key: str | None = None, **fields: Any) -> Response:
    async with world.client("demo") as client:
        return await client.post(
            "/api/v1/suspensions",
            json={"mode": "poll", "calls": list(calls) or [CALL], **fields},
            headers={"Idempotency-Key": key} if key else {},
        )


async def post(world: World, who: str, path: str, key: str | None = None, body: Any = None) -> Response:
    async with world.client(who) as client:
        headers = {"Idempotency-Key": key} if key else {}
        return await client.post(f"/api/v1/suspensions/{path}", json=body, headers=headers)


async def decide(world: World, suspension: dict[str, Any], action: str = "approve", **fields: Any) -> None:
    for item in suspension["items"]:
        decision = {"action": action, "digest": item["digest"], **fields}
        answer = await post(world, "anna", f"{suspension['id']}/items/{item['item_id']}/decision", body=decision)
        assert answer.status_code == 200, answer.text


async def approved(world: World, **fields: Any) -> str:
    suspension = (await ask(world, **fields)).json()
    await decide(world, suspension)
    return f"{suspension['id']}/items/i1"


async def beat(wiring: Wiring) -> None:
    while await process_due(wiring):
        pass


async def test_owner_redeems_and_reports_an_approved_call(world: World) -> None:
    suspension = (await ask(world)).json()
    assert (suspension["mode"], suspension["run"]["agent"], suspension["status"]) == ("poll", "demo", "pending")
    await decide(world, suspension, args={"order": "A-2"})
    item = f"{suspension['id']}/items/i1"
    redeemed = (await post(world, "demo", f"{item}/redeem", "me-1")).json()
    assert (redeemed["args"], redeemed["tool"], redeemed["attempt"]) == ({"order": "A-2"}, "pay_back", 1)
    assert redeemed["idempotency_key"] == f"{suspension['id']}:i1"
    assert (await post(world, "demo", f"{item}/redeem", "me-1")).json() == redeemed
    refused = await post(world, "demo", f"{item}/redeem", "another")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/already-redeemed")
    outcome = {"success": True, "output": {"ref": "R-1"}}
    assert (await post(world, "demo", f"{item}/outcome", "another", outcome)).json()[
        "type"
    ] == "/problems/stale-attempt"
    ended = (await post(world, "demo", f"{item}/outcome", "me-1", outcome)).json()
    assert (ended["status"], ended["end"]["status"]) == ("resumed", "completed")
    assert ended["items"][0]["permit"]["report"]["output"] == {"ref": "R-1"}
    trail = await world.wiring.runs.trail(suspension["run"]["id"])
    assert [one.type for one in trail][-4:] == ["run_resumed", "permit_redeemed", "outcome_reported", "run_completed"]


async def test_poll_suspension_is_not_enqueued(world: World) -> None:
    await approved(world)
    assert await world.wiring.schedule.take(0.01) == []


async def test_only_the_owner_redeems(world: World) -> None:
    item = await approved(world)
    for who in ("other", "anna", "root"):
        for path, body in (("redeem", None), ("outcome", {"success": True}), ("in-doubt", None)):
            assert (await post(world, who, f"{item}/{path}", "k", body)).status_code == 404


async def test_redeem_needs_an_idempotency_key(world: World) -> None:
    assert (await post(world, "demo", f"{await approved(world)}/redeem")).status_code == 422


async def test_redeem_is_refused_while_frozen(world: World) -> None:
    item = await approved(world)
    async with world.client("root") as admin:
        frozen = (await admin.post("/api/v1/freezes", json={"scope": "tool:pay_back"})).json()
        assert (await post(world, "demo", f"{item}/redeem", "k")).json()["type"] == "/problems/frozen"
        await admin.post(f"/api/v1/freezes/{frozen['id']}/unfreeze")
    assert (await post(world, "demo", f"{item}/redeem", "k")).status_code == 200


async def test_redeem_is_refused_after_the_reviewer_is_deactivated(world: World) -> None:
    item = await approved(world)
    async with world.client("root") as admin:
        await admin.post("/api/v1/reviewers/anna/deactivate")
    refused = await post(world, "demo", f"{item}/redeem", "k")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/withdrawn")
    assert "no longer a reviewer" in refused.json()["detail"]


async def test_denial_ends_the_run_at_the_next_tick(world: World) -> None:
    suspension = (await ask(world)).json()
    await decide(world, suspension, "deny", message="not this one")
    await beat(world.wiring)
    async with world.client("demo") as client:
        run = (await client.get(f"/api/v1/runs/{suspension['run']['id']}")).json()
    assert run["status"] == "completed"
    assert "not this one" in run["result"]["calls"][0]["error"]


async def test_same_key_returns_the_same_suspension(world: World) -> None:
    first, again = await ask(world, key="order A-1"), await ask(world, key="order-A-1")
    assert first.status_code == 400, "a key has no spaces"
    same = await ask(world, key="order-A-1")
    assert again.json()["id"] == same.json()["id"]
    other = await ask(world, {**CALL, "args": {"order": "A-2"}}, key="order-A-1")
    assert (other.status_code, other.json()["type"]) == (409, "/problems/idempotency-conflict")


async def test_call_in_doubt_creates_one_item_and_a_late_report_settles_it(world: World) -> None:
    item = await approved(world)
    await post(world, "demo", f"{item}/redeem", "lost")
    suspension = (await post(world, "demo", f"{item}/in-doubt")).json()
    assert (await post(world, "demo", f"{item}/in-doubt")).json()["id"] == suspension["id"]
    assert (suspension["status"], suspension["items"][0]["doubt"]["holder"]) == ("pending", "lost")
    assert (await post(world, "demo", f"{item}/outcome", "lost", {"success": True, "output": 7})).status_code == 200
    await beat(world.wiring)
    async with world.client("demo") as client:
        run = (await client.get(f"/api/v1/runs/{suspension['run']['id']}")).json()
    assert (run["status"], run["result"]["calls"][0]["output"]) == ("completed", 7)


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"agent": "other"}, "leave agent out"),
        ({"calls": [{"tool": "pay_back"}]}, "definition is missing"),
        ({"calls": [{**CALL, "args": {}}]}, "required property"),
        ({"calls": [CALL, {**CALL, "definition": {}}]}, "two definitions"),
        ({"calls": [{**CALL, "definition": {"parameters": {"type": 7}}}]}, "schema cannot be used"),
        ({"mode": "worker", "agent": "demo"}, "only with mode 'poll'"),
        ({"mode": "worker", "calls": [{"tool": "refund"}]}, "$.agent is missing"),
    ],
)
async def test_invalid_poll_request_is_refused(world: World, fields: dict[str, Any], detail: str) -> None:
    answer = await ask(world, **fields)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]
