"""The page of insights has figures to read without a script, draws them with one, and keeps rows of people private."""

import json
from collections.abc import Callable
from hashlib import sha256

import pytest
from playwright.sync_api import Page, expect

from service.core.settings import Settings
from service.core.wiring import Wiring
from service.edge.http.assets import STATIC
from service.features.control.store import Recents
from service.features.insights.api import describe_change
from service.features.insights.attention import warn_tired
from service.features.insights.facts import PersonFact
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import REFUND, asked, decide, make_ask
from workers.outbox import Counting

HOSTILE = REFUND.model_copy(update={"name": "<b>refund</b>\u202e"})


async def work(wiring: Wiring) -> None:
    """Decide as two people, and count it."""
    for _ in range(3):
        await decide(wiring, await asked(wiring), "approve")
    await decide(wiring, await asked(wiring, make_ask(HOSTILE)), "deny", "anna")
    await asked(wiring, make_ask(terms={"timeout_s": 0}))
    await asked(wiring)
    await Counting(wiring).count_waiting()


async def test_insights_show_figures_of_every_range(settings: Settings) -> None:
    async with visit(settings) as anna:
        await work(anna.wiring)
        for place in ("", "?range=24h", "?range=7d", "?range=30d", "?range=90d", "?range=century"):
            page = await anna.read(f"/insights{place}")
            assert '<dd class="number">4</dd>' in page
            assert "4 more than" in page
            assert "&lt;b&gt;refund&lt;/b&gt;" in page
            assert "\u202e" not in page


async def test_insights_of_an_empty_desk_say_so(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/insights")
        assert "Nothing was asked in this time." in page
        assert "You decided nothing in this time." in page


async def test_reviewer_sees_only_the_own_row(settings: Settings) -> None:
    async with visit(settings) as anna:
        await work(anna.wiring)
        page = await anna.read("/insights")
        assert '<th scope="row">anna</th>' in page
        assert '<th scope="row">ben</th>' not in page


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (0, 0, "none then either"),
        (2, 2, "as many as then"),
        (1200, 0, "1,200 more than then"),
        (1, 3, "2 fewer than then"),
    ],
)
def test_change_is_said_in_words(now: int, before: int, text: str) -> None:
    assert describe_change(now, before, "then") == text


def test_vendored_files_are_those_of_the_manifest() -> None:
    folder = STATIC / "vendor"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {path.name for path in folder.iterdir()} == {*manifest, "manifest.json"}
    for name, entry in manifest.items():
        assert sha256((folder / name).read_bytes()).hexdigest() == entry["sha256"]
        assert entry["version"] in entry["source"]


async def test_bar_says_once_that_approvals_are_too_fast(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        place = f"/items/{record.id}/i1"
        fast = [PersonFact(name="anna", decision_id=f"dec_{at}", approved=True, look_ms=1_800) for at in range(22)]
        at_ms = await anna.wiring.schedule.now_ms() - 360_000
        await anna.wiring.part(Recents).add("anna", [(one, at_ms + at * 10_000) for at, one in enumerate(fast[:20])])
        assert await warn_tired(anna.wiring.part(Recents), "anna")
        page = await anna.read(place)
        assert "20 approved in 3 min 10 s, median 1.8 s. Take the next from another tool, or pause 10 min." in page
        assert "Approve" in page
        await anna.wiring.part(Recents).add("anna", [(one, at_ms + 300_000) for one in fast[20:]])
        assert not await warn_tired(anna.wiring.part(Recents), "anna")
        assert "Take the next from another tool" not in await anna.read(place)


def test_browser_draws_the_figures_of_the_table(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(work)
    page = open_as("/insights?range=30d")
    expect(page.locator("#plot canvas")).to_be_visible()
    drawn = page.evaluate("JSON.parse(document.getElementById('plot').dataset.points)")
    rows = page.locator(".plotted tbody tr")
    expect(rows).to_have_count(30)
    assert [drawn[1][-1], drawn[2][-1], drawn[3][-1]] == [1, 4, 1]
    assert rows.first.locator("td").all_inner_texts() == ["1", "6", "4", "1"]
    site.act(asked)
    expect(page.locator("#pending")).to_have_text("2")
    expect(page.locator("#plot canvas")).to_be_visible()


def test_figures_are_read_without_a_script(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(work)
    page = open_as("/insights", java_script_enabled=False)
    expect(page.locator("#plot")).to_be_hidden()
    expect(page.locator(".plotted tbody tr")).to_have_count(28)
    page.get_by_role("link", name="24 h").click()
    expect(page.locator(".plotted tbody tr")).to_have_count(24)
