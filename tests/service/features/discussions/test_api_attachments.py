"""Attached files over the API: by the owner of the run and by reviewers, within limits, by their bytes."""

import base64
from pathlib import Path
from typing import Any

import pytest

from service.app import create_app
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import approve, make_agent, make_pending
from tests.service.worlds import World

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    limits: dict[str, Any] = {
        "attachment_limit_bytes": 2_000,
        "attachments_per_item": 3,
        "attachments_limit_bytes": 4_000,
    }
    return Settings(home=tmp_path, redis_url=clean_store_url, **limits)


def body_of(content: bytes, name: str = "file") -> dict[str, str]:
    return {"name": name, "content": base64.b64encode(content).decode()}


async def test_file_is_what_its_bytes_say(world: World) -> None:
    record = await make_pending(world.wiring)
    place = f"/api/v1/suspensions/{record.id}/items/i1/attachments"
    async with world.client("demo") as demo:
        for content, media_type in ((PNG, "image/png"), (b"%PDF-1.7", "application/pdf"), (SVG, "text/plain")):
            answer = await demo.post(place, json=body_of(content, "../../etc/photo.png"))
            assert answer.status_code == 200, answer.text
            sent = answer.json()["attachments"][-1]
            assert (sent["media_type"], sent["name"], sent["author_kind"]) == (media_type, "photo.png", "agent")
            found = (await demo.get(f"{place}/{sent['id']}")).json()
            assert base64.b64decode(found["content"]) == content
            assert found["attachment"] == sent
    assert (await world.wiring.desk.suspensions.read(record.id)).record == record


@pytest.mark.parametrize("content", [b"MZ\x90\x00", b"PK\x03\x04\0", b"\xff\xfe\x00", b""])
async def test_other_bytes_are_refused(world: World, content: bytes) -> None:
    record = await make_pending(world.wiring)
    async with world.client("demo") as demo:
        place = f"/api/v1/suspensions/{record.id}/items/i1/attachments"
        assert (await demo.post(place, json=body_of(content, "photo.png"))).status_code == 422
        assert (await demo.post(place, json={"name": "a", "content": "%%%"})).status_code == 422


async def test_limits_of_a_file_an_item_and_the_store(world: World) -> None:
    record, other = await make_pending(world.wiring), await make_pending(world.wiring)
    place = f"/api/v1/suspensions/{record.id}/items/i1/attachments"
    async with world.client("demo") as demo:
        assert (await demo.post(place, json=body_of(b"x" * 2_001))).status_code == 413
        for _ in range(2):
            for text in (b"a", b"b", b"c"):
                assert (await demo.post(place, json=body_of(text * 1_000))).status_code == 200
        full = await demo.post(place, json=body_of(b"d"))
        assert (full.status_code, full.json()["detail"]) == (
            409,
            "The item has 3 attached files. No more can be attached.",
        )
        answer = await demo.post(place.replace(record.id, other.id), json=body_of(b"x" * 1_001))
        assert answer.status_code == 413
        assert "3000 bytes of 4000" in answer.json()["detail"]


async def test_agent_reads_no_file_of_a_reviewer(world: World) -> None:
    record = await make_pending(world.wiring)
    place = f"/api/v1/suspensions/{record.id}/items/i1/attachments"
    async with world.client("demo") as demo, world.client("anna") as anna, world.client("other") as other:
        (file,) = (await anna.post(place, json=body_of(b"Found in our own log."))).json()["attachments"]
        assert (await demo.get(place)).json() == {"attachments": []}
        assert (await demo.get(f"{place}/{file['id']}")).status_code == 404
        assert (await other.get(place)).status_code == 404
        assert (await other.post(place, json=body_of(b"x"))).status_code == 404
        assert (await anna.get(f"{place}/{file['id']}")).status_code == 200


async def test_decided_item_takes_no_file(world: World) -> None:
    decided = await approve(world.wiring, await make_pending(world.wiring))
    async with world.client("demo") as demo:
        place = f"/api/v1/suspensions/{decided.id}/items/i1/attachments"
        assert (await demo.post(place, json=body_of(b"too late"))).status_code == 409


@pytest.fixture
def small_shares(settings: Settings) -> Settings:
    return settings.model_copy(update={"attachments_per_key_bytes": 2_000})


async def test_attachments_of_one_agent_leave_room_for_others(small_shares: Settings) -> None:
    app = create_app(small_shares)
    async with app.router.lifespan_context(app):
        wiring: Wiring = app.state.process.wiring
        tokens = {name: await make_agent(wiring, name) for name in ("demo", "other")} | {
            "again": (await wiring.api_keys.create("demo"))[1]
        }
        world = World(app, wiring, tokens)
        places = {}
        for name in ("demo", "other"):
            record = await make_pending(wiring, owner=name)
            places[name] = f"/api/v1/suspensions/{record.id}/items/i1/attachments"
        async with world.client("demo") as demo, world.client("again") as again, world.client("other") as other:
            assert (await demo.post(places["demo"], json=body_of(b"x" * 1_500, "a.txt"))).status_code == 200
            for client in (demo, again):
                refused = await client.post(places["demo"], json=body_of(b"y" * 1_500, "b.txt"))
                assert (refused.status_code, "SAYSO_ATTACHMENTS_PER_KEY_BYTES" in refused.text) == (413, True)
            assert (await other.post(places["other"], json=body_of(b"x" * 1_500, "a.txt"))).status_code == 200
