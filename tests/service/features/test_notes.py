"""Notes to the agent, over the API and on the page of the run: who writes and reads them, and what they show."""

import re
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient, Response

from sayso.core.records.suspensions import RunEnd, RunStatus
from sayso.core.transitions.execution import Fence
from service.edge.web.sessions import cookie_name
from tests.builders import approve, finish, make_pending, make_person, make_running
from tests.service.edge.web.sites import OWN
from tests.service.worlds import World

HOSTILE = "</textarea><script>alert(1)</script>\u202e{{ 7 * 7 }}\r\nsecond line"


TEXT = "Use the other account."


async def write(world: World, run_id: str, text: str = TEXT, who: str = "anna", **headers: str) -> Response:
    async with world.client(who) as client:
        return await client.post(f"/api/v1/runs/{run_id}/notes", json={"text": text}, headers=headers)


async def read(world: World, run_id: str, who: str = "demo") -> list[dict[str, Any]]:
    async with world.client(who) as client:
        notes: list[dict[str, Any]] = (await client.get(f"/api/v1/runs/{run_id}/notes")).json()["notes"]
    return notes


async def open_page(world: World, run_id: str, who: str = "anna", form: dict[str, str] | None = None) -> Response:
    """Open the page of a run, or send its form for a note."""
    cookies = {cookie_name(world.wiring.settings): world.tokens[who]}
    transport = ASGITransport(world.app)
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", cookies=cookies) as client:
        page = await client.get(f"/runs/{run_id}")
        if form is None:
            return page
        names = ("csrf", "nonce")
        hidden = {name: re.findall(rf'name="{name}" value="([^"]+)"', page.text)[-1] for name in names}
        return await client.post(f"/runs/{run_id}/notes", data={**hidden, **form}, headers=OWN)


async def test_note_is_written_once_and_read_by_its_agent_alone(world: World) -> None:
    record = await make_pending(world.wiring)
    for _ in range(2):
        answer = await write(world, record.run.id, **{"Idempotency-Key": "k1"})
        assert answer.status_code == 200, answer.text
    (note,) = await read(world, record.run.id)
    assert (note["text"], note["by"]["id"], note["delivered_at"]) == (TEXT, "anna", None)
    assert not note["undelivered"]
    async with world.client("demo") as demo:
        suspension = (await demo.get(f"/api/v1/suspensions/{record.id}")).json()
    assert suspension["notes"] == [note]
    assert await read(world, record.run.id, "root") == [note]
    async with world.client("other") as other:
        assert (await other.get(f"/api/v1/runs/{record.run.id}/notes")).status_code == 404
    assert (await write(world, record.run.id, "Other.", **{"Idempotency-Key": "k1"})).status_code == 409


async def test_agent_writes_no_note(world: World) -> None:
    record = await make_pending(world.wiring)
    assert (await write(world, record.run.id, who="demo")).status_code == 403
    assert await read(world, record.run.id) == []


async def test_note_decides_nothing(world: World) -> None:
    record = await make_pending(world.wiring)
    await write(world, record.run.id, "Approve it.")
    saved = (await world.wiring.desk.suspensions.read(record.id)).record
    assert (saved.status, saved.items) == (record.status, record.items)
    await approve(world.wiring, saved)
    assert len(await read(world, record.run.id)) == 1


async def test_note_to_an_ended_run_is_refused(world: World) -> None:
    record = await approve(world.wiring, await make_pending(world.wiring))
    assert (await write(world, record.run.id)).status_code == 200
    await finish(world.wiring, record)
    answer = await write(world, record.run.id, "Too late.")
    assert (answer.status_code, "has already ended: completed" in answer.json()["detail"]) == (409, True)
    (note,) = await read(world, record.run.id)
    assert (note["text"], note["delivered_at"], note["undelivered"]) == (TEXT, None, True)
    async with world.client("demo") as demo:
        assert (await demo.get(f"/api/v1/suspensions/{record.id}")).json()["notes"] == [note]
    page = (await open_page(world, record.run.id)).text
    assert "not delivered: the run ended first" in page
    assert 'id="note"' not in page


async def test_run_that_works_takes_a_note(world: World) -> None:
    record = await make_running(world.wiring)
    assert (await write(world, record.run.id)).status_code == 200
    leased = (await world.wiring.desk.lease(record.id, "worker-1", 30_000)).record
    assert leased.lease is not None
    assert (await write(world, record.run.id, "And stop soon.")).status_code == 200
    fence = Fence("worker-1", leased.lease.attempt, 30_000)
    ended = await world.wiring.desk.settle(record.id, fence, RunEnd(status=RunStatus.COMPLETED), ())
    assert [note.text for note in ended.record.notes] == [TEXT, "And stop soon."]


@pytest.mark.parametrize("text", ["", "   ", "x" * 2001])
async def test_note_of_no_or_too_much_text_is_refused(world: World, text: str) -> None:
    record = await make_pending(world.wiring)
    assert (await write(world, record.run.id, text)).status_code == 422
    assert await read(world, record.run.id) == []


async def test_form_of_the_page_writes_once_and_shows_hostile_text_as_text(world: World) -> None:
    record = await make_pending(world.wiring)
    first = await open_page(world, record.run.id, form={"text": HOSTILE, "nonce": "form_1"})
    again = await open_page(world, record.run.id, form={"text": HOSTILE, "nonce": "form_1"})
    assert (first.status_code, again.status_code) == (303, 303)
    assert first.headers["location"] == f"/runs/{record.run.id}#notes"
    (note,) = await read(world, record.run.id)
    assert note["text"] == HOSTILE.replace("\r\n", "\n")
    page = (await open_page(world, record.run.id)).text
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    assert "anna wrote to the agent" in page


async def test_form_needs_the_right_to_decide_on_the_run(world: World) -> None:
    record = await make_pending(world.wiring)
    world.tokens["olga"] = await make_person(world.wiring, "olga", "operator")
    assert 'id="note"' in (await open_page(world, record.run.id)).text
    page = await open_page(world, record.run.id, "olga")
    assert (page.status_code, 'id="note"' in page.text) == (200, False)


async def test_notes_are_erased_with_the_contents_of_their_run(world: World) -> None:
    record = await approve(world.wiring, await make_pending(world.wiring))
    await write(world, record.run.id, "Her name is Ann Smith.")
    await finish(world.wiring, record)
    async with world.client("root") as root:
        erased = await root.post(f"/api/v1/runs/{record.run.id}/erase", json={"reason": "asked"})
        assert erased.status_code == 200
        texts = [
            (await root.get(f"/api/v1/runs/{record.run.id}/{part}")).text for part in ("notes", "events", "suspensions")
        ]
    assert not any("Ann Smith" in text for text in texts)
    (note,) = await read(world, record.run.id)
    assert (note["text"], note["by"]["id"]) == ("", "anna")
