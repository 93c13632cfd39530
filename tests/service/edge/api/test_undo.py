"""A decision that can be undone: nothing and nobody learns of it before it takes effect, and a tick lets it."""

from pathlib import Path
from typing import Any

import pytest

from service.core.settings import Settings
from tests.builders import make_person
from tests.service.edge.api.test_requesters import ask, decide
from tests.service.worlds import World

RULES = """
version: 1
default: request_approval
rules:
  - {id: undoable, tool: pay, action: request_approval, terms: {undo: 60s}}
  - {id: short, tool: refund, action: request_approval, terms: {undo: 60s, timeout_s: 1}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(RULES)
    return Settings(redis_url=clean_store_url, policy=policy, undo="7s")


async def test_setting_holds_decisions_of_rules_without_undo(world: World) -> None:
    terms = [(await ask(world, tool, "demo"))["items"][0]["terms"] for tool in ("other", "pay")]
    assert [stated["undo_s"] for stated in terms] == [7, 60]


async def read_item(world: World, who: str, suspension: dict[str, Any]) -> dict[str, Any]:
    async with world.client(who) as client:
        found: dict[str, Any] = (await client.get(f"/api/v1/suspensions/{suspension['id']}")).json()["items"][0]
    return found


async def list_events(world: World, who: str, suspension: dict[str, Any]) -> list[str]:
    async with world.client(who) as client:
        page = (await client.get(f"/api/v1/runs/{suspension['run']['id']}/events")).json()
    return [event["type"] for event in page["events"]]


async def test_only_people_see_a_decision_that_can_be_undone(world: World) -> None:
    suspension = await ask(world, "pay", "demo")
    decided = (await decide(world, "anna", suspension)).json()
    assert (decided["status"], decided["outcome"], decided["decision"]["by"]["id"]) == ("pending", None, "anna")
    item = await read_item(world, "root", suspension)
    assert (item["undoable"]["by"]["id"], item["undoable"]["until"]) == ("anna", decided["undo_until"])
    item = await read_item(world, "demo", suspension)
    assert (item["undoable"], item["decisions"], item["outcome"], item["state"]) == (None, [], None, "open")
    assert (await list_events(world, "root", suspension))[-2:] == ["run_paused", "decision_deferred"]
    assert (await list_events(world, "demo", suspension))[-1] == "run_paused"
    async with world.client("demo") as demo:
        path = f"/api/v1/suspensions/{suspension['id']}/items/i1/redeem"
        refused = await demo.post(path, headers={"Idempotency-Key": "me"})
        assert refused.status_code == 409


async def test_author_undoes_a_decision_and_others_do_not(world: World) -> None:
    suspension = await ask(world, "pay", "demo")
    await decide(world, "anna", suspension)
    refused = (await decide(world, "root", suspension, "deny")).json()
    assert (refused["type"], "takes effect at" in refused["detail"]) == ("/problems/conflict", True)
    path = f"/api/v1/suspensions/{suspension['id']}/items/i1/decision"
    async with world.client("root") as root, world.client("anna") as anna:
        assert (await root.delete(path)).status_code == 409
        assert (await anna.delete(path)).json()["items"][0]["undoable"] is None
    assert (await decide(world, "root", suspension, "deny")).json()["decision"]["action"] == "deny"


async def test_tick_lets_a_decision_take_effect_by_the_deadline(world: World) -> None:
    suspension = await ask(world, "refund", "demo")
    decided = (await decide(world, "anna", suspension)).json()
    assert decided["undo_until"] == suspension["items"][0]["terms"]["deadline_at"]
    desk = world.wiring.desk
    while not (await desk.tick(suspension["id"])).record.receipt.decided_at_ms:
        pass  # the store's clock decides, and nothing else does
    item = await read_item(world, "demo", suspension)
    assert (item["outcome"]["verdict"], item["outcome"]["by"]["id"]) == ("approved", "anna")


async def test_batch_of_ticks_leaves_the_decision_to_a_tick_of_its_own(world: World) -> None:
    suspension = await ask(world, "pay", "demo")
    assert await world.wiring.desk.tick_batch([suspension["id"]]) == []
    await decide(world, "anna", suspension)
    assert await world.wiring.desk.tick_batch([suspension["id"]]) == [suspension["id"]]
    record = (await world.wiring.desk.suspensions.read(suspension["id"])).record
    assert record.due_at_ms is not None
    due = await world.wiring.desk.precompute([record.id], record.due_at_ms + 1)
    assert due.commits == ()


async def test_decision_of_a_deactivated_person_never_takes_effect(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    suspension = await ask(world, "refund", "demo")
    await decide(world, "ben", suspension)
    await world.wiring.reviewers.deactivate("ben")  # nobody has voided the open items yet
    while not (saved := await world.wiring.desk.tick(suspension["id"])).record.receipt.decided_at_ms:
        pass
    outcome = saved.record.items[0].outcome
    assert outcome is not None
    assert (outcome.by.id, [one.by.id for one in saved.record.items[0].voided]) == ("timeout", ["ben"])


async def test_deactivation_voids_a_decision_that_can_be_undone(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    suspension = await ask(world, "pay", "demo")
    await decide(world, "ben", suspension)
    async with world.client("root") as root:
        assert (await root.post("/api/v1/reviewers/ben/deactivate")).status_code == 200
    item = await read_item(world, "root", suspension)
    assert (item["undoable"], [one["by"]["id"] for one in item["voided"]]) == (None, ["ben"])
