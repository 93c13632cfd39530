"""The acting user confirms what an agent does for them, over the API: apart from approval, and as nobody else."""

from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from service.core.operations.open_items import count_mine
from service.core.settings import Settings
from tests.builders import make_person
from tests.service.core.auth.signing import row, sign, write_issuers
from tests.service.edge.api.test_execution import post
from tests.service.edge.api.test_requesters import ask, cancel, decide
from tests.service.edge.api.test_undo import list_events, read_item
from tests.service.worlds import World

RULES = """
version: 1
default: request_approval
rules:
  - {id: alone, tool: post, action: defer, terms: {confirm_by: who.person}}
  - {id: both, tool: pay, action: defer, terms: {confirm_by: who.person, quorum: {approve: 2}}}
  - {id: large, tool: refund, priority: 200, when: args.amount > 100, action: defer,
     terms: {confirm_by: who.person, reviewers: [anna]}}
  - {id: small, tool: refund, action: defer, terms: {reviewers: [anna]}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(RULES)
    return Settings(redis_url=clean_store_url, policy=policy, token_issuers=write_issuers(tmp_path, row()))


@pytest.fixture(autouse=True)
async def mara(world: World) -> None:
    world.tokens["mara"] = await make_person(world.wiring, "mara")


async def ask_for(world: World, tool: str, person: str | None = "Mara") -> dict[str, Any]:
    return await ask(world, tool, "demo", **({"Sayso-On-Behalf-Of": sign(sub=person)} if person else {}))


async def confirm(world: World, who: str, suspension: dict[str, Any], **fields: Any) -> Response:
    called = (await read_item(world, "root", suspension))["to_confirm"] or {"digest": "0" * 64}
    body = {"action": "confirm", "digest": called["digest"], **fields}
    return await post(world, who, f"{suspension['id']}/items/i1/confirmation", body=body)


async def redeem(world: World, suspension: dict[str, Any]) -> int:
    async with world.client("demo") as demo:
        path = f"/api/v1/suspensions/{suspension['id']}/items/i1/redeem"
        return (await demo.post(path, headers={"Idempotency-Key": "me"})).status_code


async def test_call_waits_for_its_quorum_and_its_acting_user(world: World) -> None:
    suspension = await ask_for(world, "pay")
    await decide(world, "anna", suspension)
    assert (await decide(world, "root", suspension)).json()["status"] == "pending"
    assert await redeem(world, suspension) == 409
    confirmed = (await confirm(world, "mara", suspension)).json()
    item = confirmed["items"][0]
    assert (confirmed["status"], item["confirmation"]["by"]["id"], item["to_confirm"]) == ("decided", "mara", None)
    assert [made["by"]["id"] for made in item["decisions"]] == ["anna", "root"]
    assert await redeem(world, suspension) == 200
    events = await list_events(world, "root", suspension)
    assert events[3:6] == ["decision_recorded", "decision_recorded", "confirmation_recorded"]


async def test_acting_user_alone_lets_a_call_run(world: World) -> None:
    suspension = await ask_for(world, "post")
    assert (suspension["items"][0]["allowed"], suspension["items"][0]["to_confirm"]) == (["deny"], None)
    assert (await decide(world, "anna", suspension)).status_code == 422
    assert (await confirm(world, "mara", suspension)).json()["items"][0]["outcome"]["by"]["id"] == "mara"
    assert await redeem(world, suspension) == 200


async def test_nobody_else_confirms(world: World) -> None:
    suspension = await ask_for(world, "post")
    for who in ("anna", "root"):
        refused = await confirm(world, who, suspension)
        assert (refused.status_code, refused.json()["person"]) == (403, "mara")
    assert (await confirm(world, "demo", suspension)).status_code == 403
    assert (await decide(world, "mara", suspension, "deny")).json()["type"] == "/problems/self-approval"


async def test_decline_denies_and_cannot_be_repeated_as_yes(world: World) -> None:
    suspension = await ask_for(world, "pay")
    declined = (await confirm(world, "mara", suspension, action="decline", message="Not mine.")).json()
    outcome = declined["items"][0]["outcome"]
    assert (outcome["verdict"], outcome["message"]) == ("denied", "Not mine.")
    assert (await confirm(world, "mara", suspension)).status_code == 409
    assert await redeem(world, suspension) == 409


@pytest.mark.parametrize(
    ("person", "why"), [(None, "no signed token"), ("nobody", "no active account"), ("gone", "no active account")]
)
async def test_call_for_who_cannot_confirm_is_denied_at_once(world: World, person: str | None, why: str) -> None:
    await make_person(world.wiring, "gone")
    await world.wiring.reviewers.deactivate("gone")
    suspension = await ask_for(world, "post", person)
    outcome = suspension["items"][0]["outcome"]
    assert (suspension["status"], outcome["verdict"]) == ("decided", "denied")
    assert why in outcome["message"]


async def test_deactivated_acting_user_has_not_confirmed(world: World) -> None:
    suspension = await ask_for(world, "pay")
    await confirm(world, "mara", suspension)
    async with world.client("root") as root:
        assert (await root.post("/api/v1/reviewers/mara/deactivate")).status_code == 200
    assert (await read_item(world, "root", suspension))["confirmation"] is None
    await decide(world, "anna", suspension)
    assert (await decide(world, "root", suspension)).json()["status"] == "pending"


async def test_approval_by_a_deactivated_person_does_not_count_for_a_confirmation(world: World) -> None:
    suspension = await ask_for(world, "pay")
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    for who in ("anna", "ben"):
        await decide(world, who, suspension)
    await world.wiring.reviewers.deactivate("ben")  # nobody has voided the open items yet
    assert (await confirm(world, "mara", suspension)).json()["status"] == "pending"


async def test_edit_into_a_rule_with_confirmation_asks_for_it(world: World) -> None:
    body = {"mode": "poll", "calls": [{"tool": "refund", "args": {"amount": 50}, "definition": {}}]}
    async with world.client("demo") as demo:
        headers = {"Sayso-On-Behalf-Of": sign(sub="Mara")}
        suspension = (await demo.post("/api/v1/suspensions", json=body, headers=headers)).json()
    assert suspension["items"][0]["terms"]["confirm_by"] is None
    decision = {"action": "approve", "digest": suspension["items"][0]["digest"], "args": {"amount": 500}}
    await post(world, "anna", f"{suspension['id']}/items/i1/decision", body=decision)
    item = await read_item(world, "root", suspension)
    assert (item["terms"]["confirm_by"], item["to_confirm"]["args"]) == ("mara", {"amount": 500})
    assert (await decide(world, "anna", {**suspension, "items": [item]})).json()["status"] == "pending"
    assert (await confirm(world, "mara", suspension)).json()["status"] == "decided"


async def test_digest_of_another_version_is_refused(world: World) -> None:
    suspension = await ask_for(world, "pay")
    refused = await confirm(world, "mara", suspension, digest="0" * 64)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/stale-digest")


async def test_item_stands_under_for_me_until_it_is_confirmed(world: World) -> None:
    counts = []
    suspension = await ask_for(world, "post")
    both = await ask_for(world, "pay")
    for name in ("mara", "anna"):
        counts.append(await count_mine(world.wiring, await world.wiring.reviewers.find_actor(name, "web")))
    assert counts == [2, 1]
    await confirm(world, "mara", both)
    assert await count_mine(world.wiring, await world.wiring.reviewers.find_actor("mara", "web")) == 1
    await cancel(world, "root", suspension)
    assert await count_mine(world.wiring, await world.wiring.reviewers.find_actor("mara", "web")) == 0
