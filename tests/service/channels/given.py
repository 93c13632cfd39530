"""Integers and passwords that people give over a channel: what the call gets, and what is shown afterwards."""

import json
from typing import Any

from tests.service.edge.api.test_execution import post
from tests.service.worlds import World

BEYOND = [2**53 + 1, 2**80]
PAIRS = [*((one, one) for one in BEYOND), (3.0, 3)]
"""Numbers as they are given, and as the call gets them."""

TYPED = "hunter2-tr0mbone"
SECRET = {"type": "string", "format": "password"}
WHOLE = {"type": "integer"}


def call_with(schema: dict[str, str], tool: str = "pay", **args: Any) -> dict[str, Any]:
    """Return a call of a tool whose `account` has this schema. A person gives it if the tool is `pay`."""
    properties = {"account": schema, "login": {"type": "string"}}
    return {"tool": tool, "args": args, "definition": {"parameters": {"type": "object", "properties": properties}}}


async def redeem(world: World, suspension: dict[str, Any]) -> str:
    """Return the arguments that the call gets, as they are sent."""
    redeemed = await post(world, "demo", f"{suspension['id']}/items/i1/redeem", "k")
    assert redeemed.status_code == 200, redeemed.text
    return json.dumps(redeemed.json()["args"], sort_keys=True)


async def read_views(world: World, suspension: dict[str, Any]) -> list[str]:
    """Return what agent and reviewer read about a suspension over the API, the suspension itself last."""
    run = f"/api/v1/runs/{suspension['run']['id']}"
    shown = []
    for who in ("demo", "anna"):
        async with world.client(who) as client:
            for path in (f"{run}/trail", f"{run}/events", f"/api/v1/suspensions/{suspension['id']}"):
                shown.append((await client.get(path)).text)
    return shown
