"""The requests of the n8n recipe, as its workflow says, at a real service. n8n itself does not run here.

The player knows the nodes and the expressions that the recipe uses, and refuses others.
"""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from service.core.settings import CHECKOUT
from tests.service.worlds import World

WORKFLOW = json.loads((CHECKOUT / "tests" / "frameworks" / "recipes" / "n8n.json").read_text())
DESK = "http://127.0.0.1:8321"
TERM = re.compile(r"\$json|\$execution|\$\('([^']+)'\)\.first\(\)\.json")
PART = re.compile(r"(\?)?\.(\w+)|\[(\d+)\]")


class Player:
    """Plays the workflow in one execution; `wait` stands for its Wait node."""

    def __init__(self, http: httpx.AsyncClient, execution: str, wait: Callable[[], Awaitable[None]]) -> None:
        self.http, self.wait = http, wait
        self.nodes = {node["name"]: node for node in WORKFLOW["nodes"]}
        self.outputs: dict[str, Any] = {}
        self.execution = {"id": execution}
        self.json: Any = None

    async def play(self) -> list[str]:
        """Return the names of the nodes that ran, in order."""
        name, ran = "Start", ["Start"]
        while True:
            branch = await self._run(self.nodes[name])
            self.outputs[name] = self.json
            following = WORKFLOW["connections"].get(name, {"main": []})["main"]
            if branch is None or branch >= len(following):
                return ran
            name = following[branch][0]["node"]
            ran.append(name)

    async def _run(self, node: dict[str, Any]) -> int | None:
        """Run a node, and return the number of its output."""
        kind, given = node["type"].removeprefix("n8n-nodes-base."), node["parameters"]
        if kind == "set":
            self.json = json.loads(self.fill(given["jsonOutput"]))
        elif kind == "httpRequest":
            self.json = await self._request(given)
        elif kind == "wait":
            await self.wait()
        elif kind == "if":
            (condition,) = given["conditions"]["conditions"]
            left, right = self.fill(condition["leftValue"]), condition["rightValue"]
            is_regex = condition["operator"]["operation"] == "regex"
            return 0 if (re.search(right, left) if is_regex else left == right) else 1
        elif kind == "stopAndError":
            self.json = self.fill(given["errorMessage"])
            return None
        else:
            assert kind == "manualTrigger"
        return 0

    async def _request(self, given: dict[str, Any]) -> Any:
        headers = {
            one["name"]: self.fill(one["value"]) for one in given.get("headerParameters", {}).get("parameters", ())
        }
        body = json.loads(self.fill(given["jsonBody"])) if "jsonBody" in given else None
        url = self.fill(given["url"]).removeprefix(DESK).replace("wait=50s", "wait=0s")
        response = await self.http.request(given["method"], url, headers=headers, json=body)
        response.raise_for_status()
        return response.json()

    def fill(self, text: str) -> str:
        """Return a field with its expressions filled in."""
        if not text.startswith("="):
            return text
        return re.sub(r"\{\{ (.*?) \}\}", lambda match: self._evaluate(match[1]), text[1:])

    def _evaluate(self, expression: str) -> str:
        if inner := re.fullmatch(r"JSON\.stringify\((.+)\)", expression):
            return json.dumps(self._find(inner[1]))
        value = self._find(expression)
        return "" if value is None else str(value)

    def _find(self, path: str) -> Any:
        term = TERM.match(path)
        assert term is not None, path
        value: Any = self.outputs[term[1]] if term[1] else self.execution if term[0] == "$execution" else self.json
        end = term.end()
        for part in PART.finditer(path, end):
            assert part.start() == end, path
            end = part.end()
            if value is None and part[1]:
                return None
            value = value[int(part[3])] if part[3] else value[part[2]]
        assert end == len(path), path
        return value


@pytest.mark.parametrize("action", ["approve", "deny"])
async def test_n8n_workflow_asks_waits_and_runs_the_call_as_decided(world: World, action: str) -> None:
    async with world.client("demo") as demo, world.client("root") as root:

        async def decide() -> None:
            (waits,) = (await root.get("/api/v1/suspensions")).json()["suspensions"]
            args = {"args": {"to": "ann", "amount": 5}} if action == "approve" else {"message": "Not Ann."}
            body = {"action": action, "digest": waits["items"][0]["digest"], **args}
            place = f"/api/v1/suspensions/{waits['id']}/items/{waits['items'][0]['item_id']}/decision"
            assert (await root.post(place, json=body)).status_code == 200

        player = Player(demo, "1041", decide)
        ran = await player.play()
        asked = ["Start", "Call", "Ask", "Read", "Pending?", "Later", "Read", "Pending?", "Approved?"]
        suspension = f"/api/v1/suspensions/{player.outputs['Ask']['id']}"
        item = (await demo.get(suspension)).json()["items"][0]
        if action == "deny":
            assert ran == [*asked, "Denied"]
            assert player.json == "send_money did not run: Not Ann."
            assert item["permit"] is None
        else:
            assert ran == [*asked, "Redeem", "Your own nodes", "Report"]
            assert item["permit"]["report"]["output"] == {"to": "ann", "amount": 5}
            with pytest.raises(httpx.HTTPStatusError, match="409"):
                await Player(demo, "1042", decide).play()


def test_n8n_recipe_uses_the_key_of_a_credential() -> None:
    requests = [node for node in WORKFLOW["nodes"] if node["type"].endswith("httpRequest")]
    assert len(requests) == 4
    for node in requests:
        assert node["parameters"]["genericAuthType"] == "httpHeaderAuth"
        assert "Authorization" in node["credentials"]["httpHeaderAuth"]["name"]
