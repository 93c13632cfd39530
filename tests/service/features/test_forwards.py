"""Forwards over the API and on the page: who is refused, who sees what, and that a repeated one counts once."""

import re
from html import escape
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from tests.builders import approve, make_pending, make_person
from tests.service.edge.api.test_requesters import ask, decide
from tests.service.edge.api.test_undo import list_events, read_item
from tests.service.edge.web.sites import Visit, visit
from tests.service.worlds import World

RULES = """
version: 1
default: request_approval
rules:
  - {id: paid, tool: pay, action: request_approval, terms: {reviewers: [anna, nils, "group:finance"]}}
"""
NOTE = "Look at the <b>order</b>, please."


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(RULES)
    return Settings(redis_url=clean_store_url, policy=policy)


@pytest.fixture
async def people(world: World) -> None:
    for name in ("nils", "mara", "olaf"):
        world.tokens[name] = await make_person(world.wiring, name)
    await world.wiring.groups.create("finance", ("mara",), (), "root")
    await world.wiring.groups.create("sales", ("nils",), (), "root")


async def send(world: World, who: str, suspension: Any, to: str, key: str = "", **fields: str) -> Response:
    body = {"to": to, "digest": suspension["items"][0]["digest"], "note": NOTE, **fields}
    async with world.client(who) as client:
        path = f"/api/v1/suspensions/{suspension['id']}/items/i1/forward"
        return await client.post(path, json=body, headers={"Idempotency-Key": key} if key else {})


@pytest.mark.usefixtures("people")
async def test_recipient_sees_the_forward_and_decides_and_the_agent_sees_nothing(world: World) -> None:
    suspension = await ask(world, "pay", "demo")
    answers = [await send(world, "anna", suspension, "group:finance", "once") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert answers[0].json() == answers[1].json()
    forwarded = (await read_item(world, "mara", suspension))["forwarded"]
    assert (forwarded["by"]["id"], forwarded["to"], forwarded["note"]) == ("anna", "group:finance", NOTE)
    assert (await list_events(world, "mara", suspension)).count("item_forwarded") == 1
    assert "item_forwarded" not in await list_events(world, "demo", suspension)
    assert (await read_item(world, "demo", suspension))["forwarded"] is None
    assert (await send(world, "anna", suspension, "nils", "once")).status_code == 409
    decided = await decide(world, "mara", suspension)
    assert decided.json()["outcome"]["verdict"] == "approved"
    assert (await send(world, "anna", suspension, "nils")).json()["type"] == "/problems/already-decided"


@pytest.mark.usefixtures("people")
async def test_recipients_are_read_from_the_directory(world: World) -> None:
    suspension = await ask(world, "pay", "demo")
    for to in ("olaf", "nobody", "group:sales", "group:none"):
        refused = await send(world, "anna", suspension, to)
        assert (refused.status_code, "Only nils, group:finance can" in refused.text) == (403, True), refused.text
    assert (await send(world, "olaf", suspension, "nils")).status_code == 403
    assert (await send(world, "demo", suspension, "nils")).status_code == 403
    stale = await send(world, "anna", suspension, "nils", digest="0" * 64)
    assert stale.json()["type"] == "/problems/stale-digest"
    assert (await send(world, "anna", suspension, "nils", note="x" * 501)).status_code == 422
    await world.wiring.reviewers.deactivate("nils")
    assert (await send(world, "anna", suspension, "nils")).status_code == 403
    await world.wiring.reviewers.deactivate("mara")
    assert (await send(world, "anna", suspension, "group:finance")).status_code == 403
    assert (await read_item(world, "anna", suspension))["forwarded"] is None


async def forward_by_form(anna: Visit, record: SuspensionRecord, to: str, status: int = 303, **fields: str) -> str:
    sent = {"part": "forward", "to": to, "digest": record.items[0].digest, "note": NOTE, "nonce": "n", **fields}
    return await anna.send(f"/items/{record.id}/i1", status, **sent)


async def test_page_and_list_say_who_forwarded_it(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_pending(anna.wiring)
        await make_person(anna.wiring, "ben")
        place = f"/items/{record.id}/i1"
        page = await anna.read(place)
        assert '<option value="ben">' in page
        assert '<option value="anna">' not in page
        for _ in range(2):
            await forward_by_form(anna, record, "ben")
        page = await anna.read(place)
        assert "You forwarded it to ben" in page
        assert "Look at the &lt;b&gt;order&lt;/b&gt;, please." in page
        assert "The others who may decide still can." in page
        assert "anna forwarded" in page
        listed = await anna.read("/")
        assert "you forwarded it to ben: Look at the &lt;b&gt;order&lt;/b&gt;, please." in listed
        saved = (await anna.wiring.desk.suspensions.read(record.id)).record
        assert len(saved.items[0].forwards) == 1


async def test_refused_forward_keeps_what_was_typed(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_pending(anna.wiring)
        await make_person(anna.wiring, "ben")
        kept = "Look at the &lt;b&gt;order&lt;/b&gt;, please.</textarea>"
        for to, status, why in (
            (" ", 422, "Name a reviewer"),
            ("b<i>", 403, "Choose another."),
            ("anna", 422, "yourself"),
        ):
            page = await forward_by_form(anna, record, to, status)
            assert re.search(rf'id="forward-problem" role="alert">[^<]*.*{why}', page), page
            assert 'id="forward" open' in page
            assert f'value="{escape(to)}" list="forward-names"' in page
            assert kept in page
        stale = await forward_by_form(anna, record, "ben", 409, digest="0" * 64)
        assert "The request has changed. Check it again" in stale
        assert kept in await forward_by_form(anna, record, "ben", 403, csrf="0" * 128)
        await approve(anna.wiring, record)
        page = await forward_by_form(anna, record, "ben", 409)
        assert 'id="forward-problem"' not in page
        assert "Your input was not used" in page
        assert "Look at the &lt;b&gt;order&lt;/b&gt;, please.</p>" in page


async def test_forward_survives_a_session_that_has_ended(settings: Settings) -> None:
    async with visit(settings, None) as stranger:
        record = await make_pending(stranger.wiring)
        page = await forward_by_form(stranger, record, "ben", 401)
        assert '<textarea name="part" hidden>\nforward</textarea>' in page
        assert "Look at the &lt;b&gt;order&lt;/b&gt;, please." in page
