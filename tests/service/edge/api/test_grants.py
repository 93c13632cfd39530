"""Standing grants and counter-offers over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from service.core.settings import Settings
from service.features.permissions.desk import propose_learned
from tests.builders import make_person
from tests.service.worlds import World

POLICY = """
version: 1
default: request_approval
rules:
  - id: payouts
    tool: payout
    action: request_approval
    grants: {longest: 7d, count: 50, sum: {of: args.amount, max: 5000}, by: [args.customer]}
  - id: learned
    priority: 200
    tool: payout
    when: args.customer == "C-1"
    action: request_approval
    grants: {longest: 7d, sum: {of: args.amount, max: 5000}, learn: {after: 2, probation: 1}}
"""
LEARNED = "C-1"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy)


async def suspend(client: Any, amount: object, customer: str = "C-77") -> dict[str, Any]:
    call = {"tool": "payout", "args": {"customer": customer, "amount": amount}, "definition": {}}
    found = (await client.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})).json()
    return dict(found)


async def decide(client: Any, found: dict[str, Any], **body: Any) -> Any:
    place = f"/api/v1/suspensions/{found['id']}/items/i1/decision"
    return await client.post(place, json={"action": "approve", "digest": found["items"][0]["digest"], **body})


async def test_grant_is_made_listed_and_revoked(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    async with world.client("demo") as demo, world.client("root") as root, world.client("ben") as ben:
        grant = {"for_s": 3600, "count": 10, "sum": 500, "at_most": {"args.amount": 200}}
        decided = (await decide(root, await suspend(demo, 100), grant=grant, message="A known customer.")).json()
        grant_id = decided["decision"]["grant_id"]
        (listed,) = (await ben.get("/api/v1/grants")).json()["grants"]
        assert (listed["id"], listed["state"], listed["granted_by"]) == (grant_id, "in_force", ["root"])
        assert listed["sentence"].startswith(
            'payout by demo, requested by demo, with amount at most 200, customer "C-77" and no other arguments, '
            "up to 10 times and up to 500 amount in sum, until 20"
        )
        item = (await suspend(demo, 150))["items"][0]
        assert (item["outcome"]["verdict"], item["outcome"]["by"]["kind"]) == ("approved", "policy")
        assert item["outcome"]["message"] == f"Grant {grant_id}, given by root, allows it."
        assert (await suspend(demo, 201))["items"][0]["outcome"] is None
        (used,) = (await ben.get("/api/v1/grants")).json()["grants"]
        assert (used["calls"], used["total"], used["last_used_at"] is not None) == (1, "150", True)
        revoked = (await ben.post(f"/api/v1/grants/{grant_id}/revoke")).json()
        assert (revoked["state"], revoked["revoked_by"]) == ("revoked", "ben")
        assert (await suspend(demo, 150))["items"][0]["outcome"] is None


async def test_denied_client_gets_a_typed_offer(world: World) -> None:
    async with world.client("demo") as demo, world.client("root") as root:
        found = await suspend(demo, 900)
        await decide(root, found, action="deny", message="Too much.", offer={"at_most": {"args.amount": "200"}})
        outcome = (await demo.get(f"/api/v1/suspensions/{found['id']}")).json()["items"][0]["outcome"]
        assert outcome["verdict"] == "denied"
        assert outcome["offer"]["constraints"] == [{"path": "args.amount", "kind": "at_most", "value": 200_000_000}]
        assert outcome["message"] == f"Too much. {outcome['offer']['text']}"
        assert (await suspend(demo, 200))["items"][0]["outcome"]["verdict"] == "approved"
        assert (await suspend(demo, 200))["items"][0]["outcome"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"grant": {"for_s": 8 * 86_400}},
        {"grant": {"for_s": 3600, "sum": 5001}},
        {"grant": {"for_s": 3600, "at_most": {"amount": 5}}},
        {"action": "deny", "grant": {"for_s": 3600}},
        {"offer": {"at_most": {"args.amount": 5}}},
        {"action": "deny", "offer": {}},
    ],
)
async def test_grant_or_offer_that_is_not_allowed_is_refused(world: World, body: dict[str, Any]) -> None:
    async with world.client("demo") as demo, world.client("root") as root:
        found = await suspend(demo, 100)
        assert (await decide(root, found, **body)).status_code == 422
        assert (await root.get("/api/v1/grants")).json() == {"grants": []}


async def test_proposed_grant_is_listed_and_confirmed(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    async with world.client("demo") as demo, world.client("root") as root, world.client("ben") as ben:
        for amount in (100, 200):
            await decide(root, await suspend(demo, amount, LEARNED))
        (made,) = await propose_learned(world.wiring)
        place = f"/api/v1/grants/{made.id}/confirm"
        early = await ben.post(place)
        assert early.status_code == 409
        assert "Wait for more, or grant like calls beside an approval" in early.json()["detail"]
        await decide(root, await suspend(demo, 150, LEARNED))
        (listed,) = (await ben.get("/api/v1/grants")).json()["grants"]
        assert (listed["state"], listed["granted_by"], listed["denial"]) == ("probation", [], None)
        assert listed["learned"]["ready"] is True
        figures = ("approvals", "would_allow", "approved", "edited", "denied", "unanswered")
        assert [listed["learned"][one] for one in figures] == [2, 1, 1, 0, 0, 0]
        waiting = await suspend(demo, 150, LEARNED)
        confirmed = (await ben.post(place)).json()
        assert (confirmed["state"], confirmed["granted_by"]) == ("in_force", ["ben"])
        assert (await suspend(demo, 150, LEARNED))["items"][0]["outcome"]["verdict"] == "approved"
        await decide(root, waiting, action="deny")
        (suspended,) = (await ben.get("/api/v1/grants")).json()["grants"]
        assert (suspended["state"], suspended["denial"]["by"]) == ("suspended", "root")
        assert (await suspend(demo, 150, LEARNED))["items"][0]["outcome"] is None
