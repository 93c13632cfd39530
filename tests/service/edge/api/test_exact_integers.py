"""Integers beyond 2^53 stay exact from the agent through every door to the call; `3.0` for an integer is `3`."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.core.settings import Settings
from service.edge.web.sessions import cookie_name
from tests.service.edge.api.test_execution import ask, decide, post
from tests.service.edge.web.sites import CSRF, OWN, let_in
from tests.service.worlds import World

SNOWFLAKE = 2512292042121000001
NUMBERS = [2**53 + 1, -(2**53) - 1, SNOWFLAKE, 2**63, 2**64 + 1, -(10**30) - 7, 10**3999 + 1]
POLICY = """
version: 1
default: allow
rules:
  - id: large
    tool: pay_back
    when: args.order != 7
    action: request_approval
  - id: exact
    tool: find
    when: args.order == 2512292042121000001
    action: deny
"""
DEFINITION = {
    "description": "Pay a customer back.",
    "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml")


def call(order: Any, tool: str = "pay_back") -> dict[str, Any]:
    return {"tool": tool, "args": {"order": order}, "definition": DEFINITION}


@pytest.mark.parametrize("order", NUMBERS, ids=lambda order: f"{len(str(order))} digits")
async def test_integer_reaches_the_call_exactly(world: World, order: int) -> None:
    asked = await ask(world, call(order))
    suspension = asked.json()
    assert (suspension["status"], suspension["items"][0]["tool"]["args"]) == ("pending", {"order": order}), asked.text
    assert f'"order":{order}' in asked.text.replace(" ", "")
    await decide(world, suspension)
    redeemed = await post(world, "demo", f"{suspension['id']}/items/i1/redeem", "k")
    assert f'"args":{{"order":{order}}}' in redeemed.text
    assert redeemed.json()["args"] == {"order": order}


async def test_condition_compares_integers_exactly(world: World) -> None:
    found = [(await ask(world, call(order, "find"))).json() for order in (SNOWFLAKE - 1, SNOWFLAKE, SNOWFLAKE + 1)]
    assert [one["items"][0]["outcome"]["verdict"] for one in found] == ["approved", "denied", "approved"]


async def test_condition_beyond_64_bits_asks(world: World) -> None:
    (item,) = (await ask(world, call(2**64 + 1, "find"))).json()["items"]
    assert item["outcome"] is None


async def test_edited_integer_reaches_the_call_exactly(world: World, settings: Settings) -> None:
    suspension = (await ask(world, call(2**63))).json()
    (item,) = suspension["items"]
    place = f"/items/{suspension['id']}/i1"
    token = await let_in(settings, "carla")
    async with world.client() as client:
        client.cookies.set(cookie_name(settings), token)
        page = (await client.get(place)).text
        typed = {"csrf": CSRF, "answer": "edit", "digest": item["digest"], "f0": str(SNOWFLAKE)}
        sent = await client.post(place, data=typed, headers=OWN)
    assert (str(2**63) in page, sent.status_code) == (True, 303), sent.text
    redeemed = (await post(world, "demo", f"{suspension['id']}/items/i1/redeem", "k")).json()
    assert redeemed["args"] == {"order": SNOWFLAKE}


async def test_whole_fraction_for_an_integer_reaches_the_call_as_an_integer(world: World) -> None:
    body = {"mode": "poll", "calls": [call("ORDER")]}
    async with world.client("demo") as client:
        headers = {"Content-Type": "application/json"}
        content = json.dumps(body).replace('"ORDER"', "3000.0")
        suspension = (await client.post("/api/v1/suspensions", content=content, headers=headers)).json()
    assert json.dumps(suspension["items"][0]["tool"]["args"]) == '{"order": 3000}'
    await decide(world, suspension, args={"order": 5000.0})
    redeemed = await post(world, "demo", f"{suspension['id']}/items/i1/redeem", "k")
    assert json.dumps(redeemed.json()["args"]) == '{"order": 5000}'
