"""What a person types as `format: password` is masked through every door, and the call still gets it."""

import json
from pathlib import Path
from typing import Any

import pytest

from sayso.text.redaction import MASK
from service.channels.cards import build_card
from service.settings import Settings
from service.web.sessions import cookie_name
from tests.service.api.test_execution import ask, decide, post
from tests.service.web.sites import let_in
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
    report = {"success": True, "output": "signed in"}
    reported = await post(world, "demo", f"{suspension['id']}/items/i1/outcome", "k", report)
    texts = {"report": reported.text}
    run = f"/api/v1/runs/{suspension['run']['id']}"
    paths = (f"/api/v1/suspensions/{suspension['id']}", "/api/v1/suspensions", f"{run}/suspensions", f"{run}/trail")
    for who in ("demo", "anna", "root"):
        async with world.client(who) as client:
            for path in (*paths, f"{run}/events"):
                texts[f"{who} {path}"] = (await client.get(path)).text
    seen = json.loads(texts[f"root {paths[0]}"])["items"][0]
    assert seen["outcome"]["value"] == SHOWN[tool]
    async with world.client() as client:
        client.cookies.set(cookie_name(settings), await let_in(settings, "carla"))
        pages = (f"/items/{suspension['id']}/i1", f"/runs/{suspension['run']['id']}", "/history", "/")
        for path in (*pages, "/history/export?format=csv", "/history/export?format=json"):
            texts[path] = (await client.get(path)).text
    record = (await world.wiring.desk.suspensions.read(suspension["id"])).record
    texts["card"] = repr(build_card(record, record.items[0], None, settings.public_url))
    assert [door for door, text in texts.items() if TYPED in text] == []
