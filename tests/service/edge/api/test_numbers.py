"""The number of an item: shown to its requester, typed by its reviewer."""

import json
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from service.core.settings import Settings
from tests.service.worlds import World

POLICY = """
version: 1
default: request_approval
rules:
  - id: high-risk
    tool: refund
    action: request_approval
    terms: {match_number: true}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml")


async def ask(client: AsyncClient) -> Any:
    body = {"agent": "demo", "calls": [{"tool": "refund", "args": {"order": "A-1", "amount": 9}}]}
    answer = await client.post("/api/v1/suspensions", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_number_is_shown_to_its_requester_alone(world: World) -> None:
    async with world.client("demo") as demo, world.client("anna") as anna, world.client("other") as other:
        made = await ask(demo)
        place = f"/api/v1/suspensions/{made['id']}"
        number = made["items"][0]["number"]
        assert len(number) == 2
        assert made["items"][0]["terms"]["match_number"] is True
        for path in (place, "/api/v1/suspensions", f"/api/v1/runs/{made['run']['id']}/suspensions"):
            own, seen = (await demo.get(path)).json(), (await anna.get(path)).json()
            assert f'"number": "{number}"' in json.dumps(own), path
            assert '"number": null' in json.dumps(seen), path
            assert f'"number": "{number}"' not in json.dumps(seen), path
        assert (await other.get(place)).status_code == 404


async def test_number_is_required_to_approve(world: World) -> None:
    async with world.client("demo") as demo, world.client("anna") as anna:
        made = await ask(demo)
        (item,) = made["items"]
        place = f"/api/v1/suspensions/{made['id']}/items/{item['item_id']}/decision"
        body = {"action": "approve", "digest": item["digest"]}
        without = await anna.post(place, json=body)
        assert (without.status_code, without.json()["type"]) == (403, "/problems/wrong-number")
        for number in ("1", "123", "ab", 12):
            assert (await anna.post(place, json={**body, "number": number})).status_code == 422
        right = await anna.post(place, json={**body, "number": item["number"]})
    assert right.json()["outcome"]["verdict"] == "approved"


async def test_number_is_on_no_page_and_in_no_trail(world: World) -> None:
    async with world.client("demo") as demo, world.client("anna") as anna:
        made = await ask(demo)
        trail = await anna.get(f"/api/v1/runs/{made['run']['id']}/trail")
        events = await anna.get(f"/api/v1/runs/{made['run']['id']}/events")
    assert "secret_number" not in trail.text + events.text
