"""Requesters do not decide their own calls, through none of their credentials, and a lost vote completes no quorum."""

from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest
from sayso.errors import NotAllowed, SelfApproval
from service.core.settings import Settings
from tests.builders import make_person, person
from tests.service.core.auth.signing import row, sign, write_issuers
from tests.service.edge.api.test_execution import post
from tests.service.worlds import World

RULES = """
version: 1
default: request_approval
rules:
  - {id: made, tool: wipe, action: request_approval, terms: {no_maker_approval: true}}
  - {id: two, tool: pay, action: request_approval, terms: {quorum: {approve: 2}}}
  - {id: legal, tool: sue, action: request_approval, terms: {reviewers: [lena]}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """A desk that trusts one issuer of tokens."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(RULES)
    return Settings(redis_url=clean_store_url, policy=policy, token_issuers=write_issuers(tmp_path, row()))


async def make_key(world: World, name: str, **fields: Any) -> None:
    """Let root make a key over the API."""
    async with world.client("root") as root:
        made = await root.post("/api/v1/keys", json={"name": name, **fields})
        assert made.status_code == 201, made.text
        world.tokens[name] = made.json()["key"]


async def ask(world: World, tool: str, who: str, **headers: str) -> dict[str, Any]:
    body = {"mode": "poll", "calls": [{"tool": tool, "definition": {}}]}
    async with world.client(who) as client:
        answer = await client.post("/api/v1/suspensions", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def decide(world: World, who: str, suspension: dict[str, Any], action: str = "approve") -> Response:
    decision = {"action": action, "digest": suspension["items"][0]["digest"]}
    return await post(world, who, f"{suspension['id']}/items/i1/decision", body=decision)


async def cancel(world: World, who: str, suspension: dict[str, Any]) -> Response:
    async with world.client(who) as client:
        return await client.post(f"/api/v1/runs/{suspension['run']['id']}/cancel", json={})


@pytest.mark.parametrize("channel", ["web", "api", "cli", "slack", "mail", "telegram", "webhook", "push"])
async def test_owner_of_the_key_cannot_approve_over_any_channel(world: World, channel: str) -> None:
    await make_key(world, "crm", owner="anna")
    suspension = await ask(world, "refund", "crm")
    request = {"action": "approve", "digest": suspension["items"][0]["digest"]}
    by = await world.wiring.reviewers.find_actor("anna", channel)
    with pytest.raises(SelfApproval):
        await world.wiring.desk.decide(suspension["id"], "i1", DecisionRequest.model_validate(request), by)
    assert (await decide(world, "root", suspension)).status_code == 200


async def test_owner_of_the_key_cannot_approve_with_session_or_key(world: World) -> None:
    await make_key(world, "crm", owner="anna")
    _, world.tokens["anna's key"] = await world.wiring.api_keys.create("anna", kind="reviewer")
    suspension = await ask(world, "refund", "crm")
    for who in ("anna", "anna's key"):
        refused = await decide(world, who, suspension)
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/self-approval")
    assert await world.wiring.runs.count_pending() == 1


async def test_person_of_the_token_cannot_approve(world: World) -> None:
    token = sign(sub="Anna")
    suspension = await ask(world, "refund", "demo", **{"Sayso-On-Behalf-Of": token})
    assert (await decide(world, "anna", suspension)).json()["type"] == "/problems/self-approval"


async def test_maker_of_the_key_cannot_approve_where_a_rule_refuses(world: World) -> None:
    await make_key(world, "crm")
    wiped, refunded = await ask(world, "wipe", "crm"), await ask(world, "refund", "crm")
    assert (wiped["run"]["key_maker"], wiped["items"][0]["terms"]["no_maker_approval"]) == ("root", True)
    refused = await decide(world, "root", wiped)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/self-approval")
    assert "made the key" in refused.json()["detail"]
    assert (await decide(world, "anna", wiped)).status_code == 200
    assert (await decide(world, "root", refunded)).status_code == 200  # the first hour of a small team


async def test_rotated_key_is_made_by_who_rotated_it(world: World) -> None:
    await make_key(world, "crm")
    world.tokens["boss"] = await make_person(world.wiring, "boss", "reviewer", "admin")
    key = next(one for one in await world.wiring.api_keys.list_all() if one.name == "crm")
    async with world.client("boss") as boss:
        world.tokens["crm"] = (await boss.post(f"/api/v1/keys/{key.id}/rotate")).json()["key"]
    suspension = await ask(world, "wipe", "crm")
    assert suspension["run"]["key_maker"] == "boss"
    assert (await decide(world, "boss", suspension)).status_code == 403


async def test_vote_of_a_deactivated_person_completes_no_quorum(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    suspension = await ask(world, "pay", "demo")
    assert (await decide(world, "ben", suspension)).json()["status"] == "pending"
    await world.wiring.reviewers.deactivate("ben")  # nobody has voided the open items yet
    second = (await decide(world, "anna", suspension)).json()
    assert second["status"] == "pending"
    async with world.client("anna") as anna:
        item = (await anna.get(f"/api/v1/suspensions/{suspension['id']}")).json()["items"][0]
    assert [one["by"]["id"] for one in item["decisions"]] == ["anna"]
    assert [one["by"]["id"] for one in item["voided"]] == ["ben"]
    assert (await decide(world, "root", suspension)).json()["status"] == "decided"
    async with world.client("demo") as demo:
        path = f"/api/v1/suspensions/{suspension['id']}/items/i1/redeem"
        assert (await demo.post(path, headers={"Idempotency-Key": "me"})).status_code == 200


async def test_deactivation_voids_decisions_on_open_items_at_once(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    suspension = await ask(world, "pay", "demo")
    await decide(world, "ben", suspension)
    async with world.client("root") as root:
        assert (await root.post("/api/v1/reviewers/ben/deactivate")).status_code == 200
        item = (await root.get(f"/api/v1/suspensions/{suspension['id']}")).json()["items"][0]
    assert (item["decisions"], [one["by"]["id"] for one in item["voided"]]) == ([], ["ben"])
    trail = await world.wiring.runs.trail(suspension["run"]["id"])
    assert (trail[-1].type, trail[-1].data["by"]["id"]) == ("decision_voided", "ben")


async def test_reactivated_person_decides_anew(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    suspension = await ask(world, "pay", "demo")
    await decide(world, "ben", suspension)
    async with world.client("root") as root:
        await root.post("/api/v1/reviewers/ben/deactivate")
        await root.post("/api/v1/reviewers/ben/activate")
    by = Actor(id="ben", kind=ActorKind.HUMAN)
    assert (await decide(world, "anna", suspension)).json()["status"] == "pending"
    request = DecisionRequest(action="approve", digest=suspension["items"][0]["digest"])
    assert (await world.wiring.desk.decide(suspension["id"], "i1", request, by)).record.status == "decided"


async def test_reviewer_retracts_a_decision_and_decides_anew(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    suspension = await ask(world, "pay", "demo")
    await decide(world, "ben", suspension)
    path = f"/api/v1/suspensions/{suspension['id']}/items/i1/decision"
    async with world.client("ben") as ben, world.client("anna") as anna, world.client("demo") as demo:
        assert (await anna.delete(path)).json()["type"] == "/problems/conflict"
        assert (await demo.delete(path)).status_code == 403
        item = (await ben.delete(path)).json()["items"][0]
        assert (await ben.delete(path)).status_code == 200
        events = (await demo.get(f"/api/v1/runs/{suspension['run']['id']}/events")).json()["events"]
    assert (item["decisions"], [(one["by"]["id"], one["retracted"]) for one in item["voided"]]) == ([], [("ben", True)])
    trail = await world.wiring.runs.trail(suspension["run"]["id"])
    assert [(one.type, one.data["by"]["id"]) for one in trail[-2:]] == [
        ("decision_recorded", "ben"),
        ("decision_retracted", "ben"),
    ]
    assert not {"decision_recorded", "decision_retracted"} & {one["type"] for one in events}
    assert (await decide(world, "anna", suspension)).json()["status"] == "pending"
    assert (await decide(world, "ben", suspension)).json()["status"] == "decided"
    async with world.client("ben") as ben:
        assert (await ben.delete(path)).json()["type"] == "/problems/already-decided"


async def test_reviewer_who_may_not_deny_cannot_cancel(world: World) -> None:
    suspension = await ask(world, "sue", "demo")
    refused = await cancel(world, "anna", suspension)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/not-allowed")
    assert "Ask lena, demo or an admin" in refused.json()["detail"]
    world.tokens["lena"] = await make_person(world.wiring, "lena")
    assert (await cancel(world, "lena", suspension)).status_code == 200


async def test_reviewer_who_may_not_deny_all_items_cannot_cancel(world: World) -> None:
    body = {"mode": "poll", "calls": [{"tool": tool, "definition": {}} for tool in ("refund", "sue")]}
    async with world.client("demo") as demo:
        suspension = (await demo.post("/api/v1/suspensions", json=body)).json()
    assert (await cancel(world, "anna", suspension)).status_code == 403


@pytest.mark.parametrize("who", ["root", "demo"])
async def test_admin_and_requester_cancel_what_they_may_not_deny(world: World, who: str) -> None:
    suspension = await ask(world, "sue", "demo")
    assert (await cancel(world, who, suspension)).status_code == 200


async def test_owner_of_the_key_cancels_their_own_call(world: World) -> None:
    await make_key(world, "crm", owner="anna")
    suspension = await ask(world, "sue", "crm")
    assert (await cancel(world, "anna", suspension)).status_code == 200


async def test_admin_with_a_reviewer_key_cancels_as_a_reviewer(world: World) -> None:
    _, world.tokens["root's key"] = await world.wiring.api_keys.create("root", kind="reviewer")
    suspension = await ask(world, "sue", "demo")
    assert (await cancel(world, "root's key", suspension)).status_code == 403


async def test_approved_call_is_cancelled_by_its_reviewers_alone(world: World) -> None:
    world.tokens["lena"] = await make_person(world.wiring, "lena")
    suspension = await ask(world, "sue", "demo")
    assert (await decide(world, "lena", suspension)).status_code == 200
    assert (await cancel(world, "anna", suspension)).status_code == 403
    assert (await cancel(world, "lena", suspension)).status_code == 200


async def test_desk_of_every_door_checks_who_cancels(world: World) -> None:
    suspension = await ask(world, "sue", "demo")
    for channel in ("web", "cli", "slack", "telegram", "mail"):
        with pytest.raises(NotAllowed):
            await world.wiring.desk.cancel(suspension["run"]["id"], person("anna", channel))
