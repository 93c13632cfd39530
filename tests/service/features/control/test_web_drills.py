"""Admins plant drills; the item tells its reviewer only after the decision."""

from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.builders import approve
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.stories import asked, decide
from tests.service.edge.web.test_freezes import make_admin
from tests.service.features.control.test_planting import FILE, plant
from workers.outbox import Counting

HOSTILE = "<b>Nobody</b>\u202e knows the recipient."


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with one drill."""
    drills = tmp_path / "drills.yaml"
    drills.write_text(FILE.replace("Nobody knows the recipient.", f'"{HOSTILE}"').replace("24", "0"))
    return settings_for(clean_store_url, tmp_path, drills=str(drills))


async def test_drills_are_for_admins(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "unknown-recipient" not in await anna.read("/drills", 403)


async def test_admin_plants_a_drill(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        page = await anna.read("/drills")
        assert "unknown-recipient" in page
        assert "&lt;b&gt;Nobody&lt;/b&gt;" in page
        assert "\u202e" not in page
        assert "There is no drill" in await anna.send("/drills", 404, template="none", reviewer="anna")
        await anna.send("/drills", 303, template="unknown-recipient", reviewer="anna")
        assert await anna.wiring.runs.count_pending() == 1


async def test_item_tells_of_the_drill_after_the_decision_only(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await plant(anna.wiring)
        place = f"/items/{record.id}/i1"
        page = await anna.read(place)
        assert "drill" not in page.lower()
        assert "Nobody" not in page
        await approve(anna.wiring, record)
        page = await anna.read(place)
        assert "This was a drill." in page
        assert "&lt;b&gt;Nobody&lt;/b&gt;" in page


async def test_insights_show_drills_to_their_reviewer(settings: Settings) -> None:
    async with visit(settings) as anna:
        for _ in range(3):
            await approve(anna.wiring, await plant(anna.wiring))
        await decide(anna.wiring, await asked(anna.wiring), "approve", "anna")
        await Counting(anna.wiring).count_waiting()
        page = await anna.read("/insights")
        assert "3 of 3" in page
        assert "approves false calls" in page


async def test_page_without_templates_says_how_to_add_them(clean_store_url: str, tmp_path: Path) -> None:
    async with visit(settings_for(clean_store_url, tmp_path)) as anna:
        await make_admin(anna)
        assert "SAYSO_DRILLS" in await anna.read("/drills")
