"""The bar and the menu by role, in Chromium on phone and desktop, with and without scripts."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.webhooks.store import Endpoint, Endpoints
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import PASSWORD, Site, Visit, settings_for, visit
from tests.service.edge.web.stories import asked
from tests.service.edge.web.test_gallery import admin_gallery, check_page

Open = Callable[..., Page]
NARROW: ViewportSize = {"width": 320, "height": 640}


@asynccontextmanager
async def visit_as(settings: Settings, *roles: str) -> AsyncIterator[Visit]:
    """Open the site for a person with these roles."""
    async with visit(settings, "olga") as olga:
        people = olga.wiring.reviewers._people
        known = await people.find_reviewer("olga")
        assert known is not None
        await people.save_reviewer(known.model_copy(update={"roles": roles}))
        yield olga


async def read_as(settings: Settings, *roles: str) -> tuple[list[str], list[str], str]:
    """Return the places of the bar and of the menu, and the page Me, as a person with these roles sees them."""
    async with visit_as(settings, *roles) as olga:
        page = (await olga.read("/history")).split('<nav aria-label="Pages">')[1].split("</nav>")[0]
        bar, _, menu = page.partition("<details")
        return _list_links(bar), _list_links(menu), await olga.read("/me")


def _list_links(part: str) -> list[str]:
    return re.findall(r'<a [^>]*href="([^"]+)"', part)


async def test_bar_of_a_reviewer_has_three_pages_and_no_menu(settings: Settings) -> None:
    bar, menu, me = await read_as(settings, "reviewer")
    assert (bar, menu) == (["/", "/history", "/me"], [])
    others = _list_links(me.split('id="more-h"')[1].split("</nav>")[0])
    assert others == [
        "/runs",
        "/rules",
        "/insights",
        "/operate",
        "/grants",
        "/second-looks",
        "/undo",
        "/groups",
        "/who",
    ]


async def test_menu_of_an_auditor_has_all_that_they_read_and_nothing_to_set_up(settings: Settings) -> None:
    bar, menu, me = await read_as(settings, "reviewer", "auditor")
    assert bar == ["/", "/history", "/me"]
    wanted = {"/runs", "/rules", "/insights", "/activity", "/people", "/keys", "/channels", "/webhooks"}
    assert wanted <= set(menu)
    assert not {"/drills", "/welcome"}.intersection(menu)
    assert 'id="more-h"' not in me


@pytest.fixture
def settings_with_a_channel(clean_store_url: str, tmp_path: Path) -> Settings:
    file = tmp_path / "channels.yaml"
    file.write_text("channels: {ops: {kind: ntfy, topic: desk-1932, base_url: 'https://ntfy.example.com'}}")
    return settings_for(clean_store_url, tmp_path, channels=str(file))


async def test_auditor_reads_what_admins_set_up_and_gets_no_form(settings_with_a_channel: Settings) -> None:
    shown = {"/people": "olga", "/keys": "night-bot", "/channels": "ops", "/webhooks": "hooks.example.com"}
    async with visit_as(settings_with_a_channel, "reviewer", "admin") as admin:
        await admin_gallery(admin.wiring)
        fields = {
            "id": "whe_1",
            "url": "https://hooks.example.com",
            "created_by": "root",
            "created_at_ms": 1,
            "events": (),
            "secrets": ({"secret": "whsec_x"},),
        }
        await admin.wiring.part(Endpoints).add(Endpoint.model_validate(fields))
        for place, text in shown.items():
            page = (await admin.read(place)).partition("<main")[2]
            assert text in page
            assert '<form method="post"' in page or '<form class="choices" method="post"' in page
    async with visit_as(settings_with_a_channel, "auditor") as auditor:
        for place, text in shown.items():
            page = (await auditor.read(place)).partition("<main")[2]
            assert text in page
            assert 'method="post"' not in page.partition("</main>")[0]


async def test_menu_of_an_admin_has_all_other_pages(settings: Settings) -> None:
    bar, menu, _me = await read_as(settings, "reviewer", "admin")
    assert bar == ["/", "/history", "/me"]
    wanted = {"/runs", "/rules", "/insights", "/groups", "/channels", "/keys", "/webhooks", "/drills", "/operate"}
    assert wanted <= set(menu)


@pytest.mark.parametrize("viewport", [NARROW, PHONE, DESKTOP], ids=["320", "phone", "desktop"])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])
def test_menu_opens_and_leads_to_a_page(site: Site, open_as: Open, viewport: ViewportSize, scripts: bool) -> None:
    async def begin(wiring: Wiring) -> None:
        await wiring.reviewers.add("root", PASSWORD, ("reviewer", "admin"))
        await asked(wiring)

    site.act(begin)
    page = open_as("/history", name="root", viewport=viewport, java_script_enabled=scripts)
    menu = page.locator(".all-pages")
    menu.locator("summary").click()
    expect(menu.locator("ul")).to_be_in_viewport(ratio=0.9)
    if scripts:
        check_page(page, f"Admin at {viewport['width']} px")
    menu.get_by_role("link", name="Webhooks").click()
    expect(page.get_by_role("heading", name="Webhooks", level=1)).to_be_visible()
    expect(menu.locator("summary")).to_have_class("here-now")
