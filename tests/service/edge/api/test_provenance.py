"""Where calls over the API come from: their thread, the key's owner, and the person of a signed token."""

from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from service.core.settings import Settings
from tests.builders import make_person
from tests.service.core.auth.signing import IDP, private_key, row, sign, write_issuers
from tests.service.worlds import POLICY, World

RULES = """
version: 1
default: allow
rules:
  - {id: taint, tool: "send_*", after: read_web, action: request_approval}
  - {id: staging, tool: deploy, when: run.environment == "staging" && run.tenant == "default", action: deny}
  - {id: sales, tool: discount, when: '"sales" in who.groups && who.owner == "anna" && who.key == "crm"', action: deny}
  - id: for-mara
    tool: pay
    when: who.person == "mara"
    action: request_approval
    terms: {reviewers: ["manager_of:who.person"]}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """A desk in staging that trusts one issuer of tokens."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(RULES)
    issuers = write_issuers(tmp_path, row())
    return Settings(redis_url=clean_store_url, policy=policy, environment="staging", token_issuers=issuers)


async def ask(world: World, tool: str, who: str = "demo", key: str | None = None, **fields: Any) -> Response:
    tokens = fields.pop("tokens", [])
    headers = [("Sayso-On-Behalf-Of", one) for one in tokens] + ([("Idempotency-Key", key)] if key else [])
    body = {"mode": "poll", "calls": [{"tool": tool, "definition": {}}], **fields}
    async with world.client(who) as client:
        return await client.post("/api/v1/suspensions", json=body, headers=headers)


async def run(world: World, tool: str, **fields: Any) -> None:
    """Have a call allowed, and redeem its permit; its result is never reported."""
    suspension = (await ask(world, tool, **fields)).json()
    async with world.client("demo") as client:
        path = f"/api/v1/suspensions/{suspension['id']}/items/i1/redeem"
        assert (await client.post(path, headers={"Idempotency-Key": "me"})).status_code == 200


def decided_by(answer: Response) -> str | None:
    assert answer.status_code == 201, answer.text
    rule_id: str | None = answer.json()["items"][0]["terms"]["rule_id"]
    return rule_id


async def test_thread_remembers_the_tools_that_started(world: World) -> None:
    before = await ask(world, "send_mail", thread_id="t1")
    assert (before.json()["status"], before.json()["progress"]) == ("decided", {"tools": [], "usage": None})
    await run(world, "search", thread_id="t1")
    await run(world, "read_web", thread_id="t1")
    tainted = await ask(world, "send_mail", thread_id="t1")
    assert (tainted.json()["status"], decided_by(tainted)) == ("pending", "taint")
    assert tainted.json()["progress"]["tools"] == ["search", "read_web"]
    assert (await ask(world, "send_mail", thread_id="t2")).json()["status"] == "decided"
    assert (await ask(world, "send_mail", who="other", thread_id="t1")).json()["status"] == "decided"


async def test_call_that_was_only_allowed_has_not_started(world: World) -> None:
    await ask(world, "read_web", thread_id="t1")
    assert (await ask(world, "send_mail", thread_id="t1")).json()["status"] == "decided"


async def test_call_outside_of_a_thread_has_unknown_tools(world: World) -> None:
    suspension = (await ask(world, "send_mail")).json()
    assert (suspension["status"], suspension["progress"]) == ("pending", None)
    assert "could not be evaluated" in suspension["items"][0]["prompt"]["reason"]


async def test_thread_with_too_many_tools_is_asked_about(world: World) -> None:
    names = [f"tool_{place}" for place in range(201)]
    key = world.wiring.runs._keys.thread_tools("demo", "t1")
    await world.wiring.runs._redis.zadd(key, {name: place for place, name in enumerate(names)})
    await run(world, "look", thread_id="t1")
    assert await world.wiring.runs._redis.zcard(key) == 201
    assert (await ask(world, "send_mail", thread_id="t1")).json()["status"] == "pending"


async def test_environment_and_tenant_are_those_of_the_desk(world: World) -> None:
    answer = await ask(world, "deploy", context={"environment": "production"})
    assert (decided_by(answer), answer.json()["run"]["environment"]) == ("staging", "staging")


async def make_owned_key(world: World) -> None:
    await world.wiring.groups.create("sales", ("anna",), (), "root")
    async with world.client("root") as client:
        made = await client.post("/api/v1/keys", json={"name": "crm", "owner": "anna"})
    assert (made.status_code, made.json()["owner"]) == (201, "anna")
    world.tokens["crm"] = made.json()["key"]


async def test_rules_read_the_owner_of_the_key_and_their_groups(world: World) -> None:
    await make_owned_key(world)
    answer = await ask(world, "discount", who="crm")
    assert decided_by(answer) == "sales"
    assert answer.json()["run"]["who"]["groups"] == ["sales"]


async def test_owner_who_was_deactivated_is_unknown(world: World) -> None:
    await make_owned_key(world)
    await world.wiring.reviewers.deactivate("anna")
    answer = await ask(world, "discount", who="crm")
    assert (answer.json()["status"], answer.json()["run"]["who"]) == ("pending", None)


async def test_rotated_key_keeps_its_owner(world: World) -> None:
    await make_owned_key(world)
    key = next(one for one in await world.wiring.api_keys.list_all() if one.name == "crm")
    made, _ = await world.wiring.api_keys.rotate(key.id, 0)
    assert made.owner == "anna"


@pytest.mark.parametrize(
    ("who", "body", "status", "says"),
    [
        ("root", {"name": "crm", "owner": "nobody"}, 422, "There is no active person named 'nobody' to own the key."),
        ("anna", {"name": "anna", "kind": "reviewer", "owner": "anna"}, 422, "Only an agent's key has an owner."),
        ("root", {"name": "anna", "kind": "reviewer", "owner": "anna"}, 403, "Only anna can make a key that decides"),
    ],
    ids=["an unknown owner", "an owner of one's own key", "an owner of another's key"],
)
async def test_key_of_a_wrong_owner_is_refused(
    world: World, who: str, body: dict[str, str], status: int, says: str
) -> None:
    async with world.client(who) as client:
        refused = await client.post("/api/v1/keys", json=body)
    assert refused.status_code == status
    assert refused.json()["detail"].startswith(says)


# the person of a signed token


async def test_signed_token_names_the_person_and_their_manager_decides(world: World) -> None:
    for name in ("mara", "ines"):
        world.tokens[name] = await make_person(world.wiring, name)
    async with world.client("root") as client:
        changed = await client.post("/api/v1/reviewers/mara/manager", json={"manager": "ines"})
    assert (changed.status_code, changed.json()["manager"]) == (200, "ines")
    suspension = (await ask(world, "pay", tokens=[sign()])).json()
    assert suspension["items"][0]["terms"]["reviewers"] == ["ines"]
    who = suspension["run"]["who"]
    assert (who["person"], who["person_name"], who["issuer"]) == ("mara", "Mara Lindqvist", IDP)
    trail = await world.wiring.runs.trail(suspension["run"]["id"])
    assert trail[0].data["who"]["person"] == "mara"
    statuses = {}
    for name in ("mara", "anna", "ines"):
        async with world.client(name) as client:
            path = f"/api/v1/suspensions/{suspension['id']}/items/i1/decision"
            body = {"action": "approve", "digest": suspension["items"][0]["digest"]}
            statuses[name] = (await client.post(path, json=body)).status_code
    assert statuses == {"mara": 403, "anna": 403, "ines": 200}


async def test_person_of_the_token_cannot_decide(world: World) -> None:
    world.wiring.settings.policy.write_text(POLICY)
    world.tokens["mara"] = await make_person(world.wiring, "mara")
    suspension = (await ask(world, "pay_out", tokens=[sign()])).json()
    async with world.client("mara") as client:
        path = f"/api/v1/suspensions/{suspension['id']}/items/i1/decision"
        body = {"action": "approve", "digest": suspension["items"][0]["digest"]}
        refused = await client.post(path, json=body)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/self-approval")


async def test_unknown_manager_leaves_the_decision_to_other_reviewers(world: World) -> None:
    suspension = (await ask(world, "pay", tokens=[sign()])).json()
    assert suspension["items"][0]["terms"]["reviewers"] == []
    assert "could not be evaluated" in suspension["items"][0]["prompt"]["reason"]


async def test_call_without_a_token_is_asked_about(world: World) -> None:
    claims = {"who": {"person": "mara"}, "person": "mara"}
    suspension = (await ask(world, "pay", context=claims)).json()
    assert (suspension["status"], suspension["run"]["who"]) == ("pending", None)
    assert "could not be evaluated" in suspension["items"][0]["prompt"]["reason"]


async def test_invalid_token_refuses_the_request(world: World) -> None:
    refused = await ask(world, "look", tokens=[sign(private_key("EdDSA", "stranger"))])
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/invalid-person-token")
    assert "signature does not verify" in refused.json()["detail"]
    async with world.client("demo") as client:
        headers = {"Sayso-On-Behalf-Of": sign(iat=-900, exp=-60)}
        started = await client.post("/api/v1/runs", json={"agent": "demo", "input": "x"}, headers=headers)
    assert started.status_code == 403


async def test_two_tokens_refuse_the_request(world: World) -> None:
    refused = await ask(world, "look", tokens=[sign(), sign()])
    assert (refused.status_code, refused.json()["type"]) == (400, "/problems/invalid-header")


async def test_renewed_token_of_the_same_person_repeats_a_request(world: World) -> None:
    first = await ask(world, "look", key="k1", tokens=[sign(exp=500)])
    again = await ask(world, "look", key="k1", tokens=[sign(exp=600)])
    assert first.json()["id"] == again.json()["id"]
    assert (await ask(world, "look", key="k1", tokens=[sign(sub="ben")])).status_code == 409
    assert (await ask(world, "look", key="k1")).status_code == 409


async def test_started_run_keeps_the_person(world: World) -> None:
    async with world.client("demo") as client:
        headers = {"Sayso-On-Behalf-Of": sign()}
        started = await client.post("/api/v1/runs", json={"agent": "demo", "input": "x"}, headers=headers)
    (entry, *_) = await world.wiring.runs.trail(started.json()["id"])
    assert entry.data["who"] == {"person": "mara", "person_name": "Mara Lindqvist", "issuer": IDP}


@pytest.mark.parametrize("manager", ["mara", "nobody"])
async def test_manager_must_be_another_active_person(world: World, manager: str) -> None:
    await make_person(world.wiring, "mara")
    async with world.client("root") as client:
        refused = await client.post("/api/v1/reviewers/mara/manager", json={"manager": manager})
        assert refused.status_code == 422
        assert (await client.post("/api/v1/reviewers/nobody/manager", json={"manager": "anna"})).status_code == 404
        removed = await client.post("/api/v1/reviewers/mara/manager", json={"manager": None})
    assert removed.json()["manager"] is None
