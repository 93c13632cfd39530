"""Pages of replays: started by admins, read while they run, and deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sayso.wire.rulebook import ReplayStatus
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.whatif.store import Replay, ReplayStore
from tests.builders import make_person
from tests.service.edge.web.sites import Site, Visit, settings_for, visit
from tests.service.edge.web.test_freezes import make_admin
from tests.service.edge.web.test_gallery import check_page
from tests.service.features.rulebook.test_rules import RULES
from tests.service.features.whatif.test_operations_replays import refund, request

REPLAYS = "/rules/-/replays"
LOOSE = """\
version: 1
default: request_approval
rules: [{id: refunds, tool: refund, when: args.amount < 1000, action: allow}]
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, RULES)


async def record_calls(wiring: Wiring) -> str:
    """Record a denied, an approved and an undecided refund, and another call; return the denied one."""
    denied = await refund(wiring, 900, "deny")
    await refund(wiring, 50, "approve")
    await refund(wiring, 5000)
    await request(wiring, "publish", note="<b>")
    return denied.id


async def replay(anna: Visit, **fields: str) -> str:
    """Start a replay, and return its page when it has ended."""
    form = {"text": LOOSE, "since": "2026-01-01", "until": "2100-01-01", "path": "", **fields}
    place = await anna.send(REPLAYS, 303, **form)
    await anna.app.state.rule_replays.wait(place.rpartition("/")[2], 60)
    return await anna.read(place)


async def test_replay_shows_the_matrix_and_each_call_that_was_denied(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        denied = await record_calls(anna.wiring)
        page = await replay(anna)
        for words in (
            "2 of 4 recorded calls would change",
            "asked, denied by a person",
            "EUR 900.00",
            f'href="/items/{denied}/i1"',
            "then by the default",
            "now by refunds",
            "24 s saved, nothing added",
            "By rule",
        ):
            assert words in page
        assert "<b>" not in page
        assert "Delete this replay" in page
        assert "No calls are recorded in this range." in await replay(anna, until="2026-01-01")
        listed = await anna.read(REPLAYS)
        assert listed.count("/rules/-/replays/rpl_") == 2
        for place in {one.partition('"')[0] for one in listed.split('href="')[1:] if one.startswith(f"{REPLAYS}/")}:
            await anna.send(f"{place}/delete")
        assert "/rules/-/replays/rpl_" not in await anna.read(REPLAYS)


async def test_replay_refuses_what_cannot_be_tried(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.read(REPLAYS, 403)
        await anna.send(REPLAYS, 403, text=LOOSE, since="2026-01-01", until="2026-02-01")
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "# Reads are harmless." in await anna.read(REPLAYS)
        days = {"since": "2026-01-01", "until": "2026-02-01"}
        page = await anna.send(REPLAYS, 422, text=LOOSE.replace("tool:", "tol:"), **days)
        assert "candidate:3:23: rule refunds: there is no key `tol` here" in page
        assert "Paste the rules to try." in await anna.send(REPLAYS, 422, text=" ", **days)
        assert "Enter both days as" in await anna.send(REPLAYS, 422, text=LOOSE, since="soon", until="")
        assert "tol: refund" in page, "the form keeps what was typed"
        await anna.read(f"{REPLAYS}/rpl_none", 404)


async def test_running_replay_is_read_again_by_the_browser(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        at_ms = await anna.wiring.schedule.now_ms()
        running = Replay(
            id="rpl_1",
            by="anna",
            status=ReplayStatus.RUNNING,
            file="draft",
            version="v",
            from_ms=0,
            to_ms=at_ms,
            started_at_ms=at_ms,
            updated_at_ms=at_ms,
            runs=40,
            of_runs=200,
        )
        await anna.wiring.part(ReplayStore).create(running)
        found = await anna.client.get(f"{REPLAYS}/rpl_1")
        assert found.headers["refresh"] == "2"
        assert "40 of about 200 runs" in found.text
        assert "Stop this replay" in found.text


def test_replay_is_started_and_read_in_a_browser(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(record_calls)
    site.act(lambda wiring: make_person(wiring, "root", "reviewer", "admin"))
    page = open_as("/rules", name="root")
    page.get_by_role("link", name="Replay").click()
    check_page(page, "replays")
    page.get_by_label("Rules YAML").fill(LOOSE)
    page.get_by_role("button", name="Start the replay").click()
    expect(page.get_by_role("heading", name="2 of 4 recorded calls would change")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="Stop this replay")).to_have_count(0, timeout=60_000)
    expect(page.get_by_role("link", name="refund").first).to_be_visible()
    check_page(page, "replay matrix")
