"""What a person types as `format: password` is masked through every door, and the call still gets it."""

import json
from pathlib import Path
from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.events import WebhookEvent
from sayso.core.text.redaction import MASK
from service.channels.cards import build_card
from service.channels.webhook_events import build_event
from service.core.settings import Settings
from service.core.store.announcements import Announcement
from service.edge.web.sessions import cookie_name
from tests.service.edge.api.test_execution import ask, decide, post
from tests.service.edge.web.sites import let_in
from tests.service.edge.web.stories import ask_value, asked, finish, make_ask, pause
from tests.service.edge.web.stories import decide as decide_as
from tests.service.worlds import World

TYPED = "hunter2-tr0mbone"
POLICY = """
version: 1
default: allow
rules:
  - id: whole
    tool: log_in
    action: request_user_input
    ask: {target_arg: secret, response_schema: {type: string, format: password}}
  - id: part
    tool: pay
    action: request_user_input
    ask:
      target_arg: secret
      response_schema:
        type: object
        properties: {pin: {type: string, format: password}, note: {type: string}}
"""
DEFINITION = {"description": "A tool.", "parameters": {"type": "object", "properties": {"order": {"type": "string"}}}}
GIVEN: dict[str, Any] = {"log_in": TYPED, "pay": {"pin": TYPED, "note": "by card"}}
SHOWN: dict[str, Any] = {"log_in": MASK, "pay": {"pin": MASK, "note": "by card"}}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml")


@pytest.mark.parametrize("tool", ["log_in", "pay"])
async def test_typed_password_is_masked_through_every_door(world: World, settings: Settings, tool: str) -> None:
    suspension = (await ask(world, {"tool": tool, "args": {"order": "A-1"}, "definition": DEFINITION})).json()
    await decide(world, suspension, "value", value=GIVEN[tool])
    redeemed = await post(world, "demo", f"{suspension['id']}/items/i1/redeem", "k")
    assert redeemed.json()["args"]["secret"] == GIVEN[tool]
    said = {"log": f"signed in with {TYPED}", "quoted": json.dumps({"secret": TYPED}), "calls": [TYPED]}
    report = {"success": True, "output": said}
    reported = await post(world, "demo", f"{suspension['id']}/items/i1/outcome", "k", report)
    texts = {"report": reported.text, **await report_elsewhere(world, suspension, said)}
    run = f"/api/v1/runs/{suspension['run']['id']}"
    paths = (f"/api/v1/suspensions/{suspension['id']}", "/api/v1/suspensions", f"{run}/suspensions", f"{run}/trail")
    for who in ("demo", "anna", "root"):
        async with world.client(who) as client:
            for path in (*paths, f"{run}/events", f"{run}/events/stream", f"{run}/timeline", run, "/api/v1/runs"):
                texts[f"{who} {path}"] = (await client.get(path)).text
    seen = json.loads(texts[f"root {paths[0]}"])["items"][0]
    assert seen["outcome"]["value"] == SHOWN[tool]
    async with world.client() as client:
        client.cookies.set(cookie_name(settings), await let_in(settings, "carla"))
        pages = (f"/items/{suspension['id']}/i1", f"/runs/{suspension['run']['id']}", "/history", "/")
        for path in (*pages, "/history/export?format=csv", "/history/export?format=json"):
            texts[path] = (await client.get(path)).text
    record = (await world.wiring.desk.suspensions.read(suspension["id"])).record
    assert record is not None
    assert TYPED in repr(record.end)  # the record keeps what was reported
    for announcement in (WebhookEvent.ITEM_DECIDED, WebhookEvent.RUN_FINISHED):
        item_id = "i1" if announcement is WebhookEvent.ITEM_DECIDED else ""
        built = Announcement(id="evt_1", type=announcement, suspension_id=record.id, item_id=item_id, at_ms=0)
        texts[announcement] = str(build_event(built, record, {}, settings.public_url))
    texts["card"] = repr(build_card(record, record.items[0], None, settings.public_url))
    assert [door for door, text in texts.items() if TYPED in text] == []


async def report_elsewhere(world: World, suspension: dict[str, Any], said: dict[str, Any]) -> dict[str, str]:
    """Quote the value as an external event and in a comment; return what the doors then say."""
    run = f"/api/v1/runs/{suspension['run']['id']}"
    event = {"type": "tool_completed", "data": {"tool_name": "x", "output": said}}
    sent = {"source_format": "afk", "events": [{"seq": 1, "event": event}]}
    async with world.client("demo") as client:
        assert (await client.post(f"{run}/events", json=sent)).status_code == 200
        external = (await client.get(f"{run}/events/external")).text
    async with world.client("anna") as client:
        place = f"/api/v1/suspensions/{suspension['id']}/items/i1/comments"
        comment = await client.post(place, json={"text": f"They typed {TYPED}"})
        listed = (await client.get(f"{run}/comments")).text
    assert (MASK in external, MASK in listed) == (True, True)
    return {"external": external, "comment": comment.text, "comments": listed}


async def test_typed_password_stays_masked_in_later_suspensions(world: World) -> None:
    """A client that does not report puts the call in doubt: its arguments have the value, and so has its result."""
    call = {"tool": "log_in", "args": {"order": "A-1"}, "definition": DEFINITION}
    suspension = (await ask(world, call)).json()
    await decide(world, suspension, "value", value=TYPED)
    await post(world, "demo", f"{suspension['id']}/items/i1/redeem", "k")
    doubted = (await world.wiring.desk.mark_in_doubt(suspension["id"], "i1")).following
    assert doubted is not None
    async with world.client("anna") as client:
        later = (await client.get(f"/api/v1/suspensions/{doubted.id}")).json()
        assert later["items"][0]["tool"]["args"]["secret"] == MASK
        value = {"choice": "skip", "result": f"it said {TYPED}"}
        await decide(world, later, "value", value=value)
        run = f"/api/v1/runs/{suspension['run']['id']}"
        paths = (f"/api/v1/suspensions/{doubted.id}", f"{run}/suspensions", f"{run}/events", run)
        texts = {path: (await client.get(path)).text for path in paths}
    assert [path for path, text in texts.items() if TYPED in text] == []
    await world.wiring.desk.cancel(suspension["run"]["id"], Actor(id="root", kind=ActorKind.HUMAN), None, is_admin=True)


async def test_typed_password_is_masked_in_results_of_workers(world: World) -> None:
    """A worker reports the result in the run's end, in its events and in the words of its model."""
    wiring, quoted = world.wiring, f"The code {TYPED} was taken"
    draft = ask_value(terms={"secrets": ("loyalty_code",)})
    answered = await decide_as(wiring, await asked(wiring, draft), "value", value=TYPED)
    paused = await pause(wiring, answered, [make_ask()], words=quoted)
    ended = await finish(wiring, await decide_as(wiring, paused, "approve"), {"code": quoted})
    run = f"/api/v1/runs/{ended.run.id}"
    async with world.client("root") as client:
        paths = (run, f"{run}/events", f"{run}/events/stream", f"{run}/timeline", f"{run}/suspensions")
        texts = {path: (await client.get(path)).text for path in paths}
    assert [path for path, text in texts.items() if TYPED in text] == []
    assert f"The code {MASK} was taken" in texts[f"{run}/events"]


async def test_secret_hides_nobody_in_the_trail(world: World) -> None:
    """A secret that is the name of a reviewer masks what tools say, and not who decided."""
    wiring = world.wiring
    draft = ask_value(terms={"secrets": ("loyalty_code",)})
    answered = await decide_as(wiring, await asked(wiring, draft), "value", name="anna", value="anna")
    await finish(wiring, answered, {"code": "anna"})
    trail = await wiring.runs.trail(answered.run.id)
    assert [one.data["output"] for one in trail if one.type == "tool_completed"] == [{"code": MASK}]
    assert [one.data["by"]["id"] for one in trail if one.type == "decision_recorded"] == ["anna"]
