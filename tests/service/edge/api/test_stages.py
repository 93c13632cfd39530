"""Items in stages over the API: who decides when, what its readers see, and which call the permit runs."""

from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.builders import make_person
from tests.service.edge.api.test_execution import post
from tests.service.edge.api.test_requesters import ask, decide
from tests.service.edge.api.test_undo import list_events, read_item
from tests.service.worlds import World

RULES = """
version: 1
default: request_approval
rules:
  - {id: paid, tool: pay, action: request_approval, terms: {stages: [{reviewers: [mara]}, {reviewers: [nils]}]}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(RULES)
    return Settings(redis_url=clean_store_url, policy=policy)


@pytest.fixture(autouse=True)
async def people(world: World) -> None:
    for name in ("mara", "nils"):
        world.tokens[name] = await make_person(world.wiring, name)


async def test_next_stage_sees_the_edit_and_the_permit_is_of_it(world: World) -> None:
    suspension = await ask(world, "pay", "demo")
    assert (await decide(world, "nils", suspension)).status_code == 403
    edited = {"action": "approve", "digest": suspension["items"][0]["digest"], "args": {"amount": 7}}
    path = f"{suspension['id']}/items/i1"
    assert (await post(world, "mara", f"{path}/decision", body=edited)).json()["outcome"] is None
    item = await read_item(world, "nils", suspension)
    assert (item["tool"]["args"], item["original"], item["terms"]["stage"]) == ({"amount": 7}, {}, 1)
    assert [stage["reviewers"] for stage in item["terms"]["stages"]] == [["mara"], ["nils"]]
    assert (await list_events(world, "nils", suspension))[-2:] == ["decision_recorded", "stage_started"]
    assert (await list_events(world, "demo", suspension))[-1] == "run_paused"
    assert (await decide(world, "nils", suspension)).json()["type"] == "/problems/stale-digest"
    decided = await decide(world, "nils", {**suspension, "items": [item]})
    assert decided.json()["outcome"]["verdict"] == "approved"
    async with world.client("demo") as demo:
        asked = (await demo.get(f"/api/v1/suspensions/{suspension['id']}")).json()["items"][0]
        assert [stage["quorum"] for stage in asked["terms"]["stages"]] == [None, None]
        redeemed = await demo.post(f"/api/v1/suspensions/{path}/redeem", headers={"Idempotency-Key": "me"})
    assert redeemed.status_code == 200, redeemed.text
    assert redeemed.json()["args"] == {"amount": 7}
    assert asked["outcome"]["digest"] == item["digest"]
