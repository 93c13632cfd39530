import re
from pathlib import Path

import pytest

from service.core.settings import CHECKOUT, Settings
from service.edge.http.assets import STATIC
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked

TEMPLATES = CHECKOUT / "templates"
PAGES = sorted(path for folder in ("", "pages", "parts") for path in (TEMPLATES / folder).glob("*.html"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_templates_escape_and_have_no_inline_scripts_or_styles(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\|\s*safe|autoescape|Markup", text)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script(?! src=)", text)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)


def test_static_files_load_nothing_external() -> None:
    for name in ("sayso.css", "times.js", "live.js", "item.js"):
        assert not re.search(r"https?://|@import|url\((?!data:)", (STATIC / name).read_text())


@pytest.mark.parametrize(
    "name",
    [
        "times",
        "connection",
        "live",
        "item",
        "settle",
        "shown",
        "inbox",
        "arm",
        "edit",
        "operate",
        "copy",
        "alike",
        "batch",
        "rows",
        "insights",
        "menus",
        "notices",
        "pane",
        "split",
        "select",
        "words",
        "folds",
    ],
)
def test_scripts_are_small_and_write_no_markup(name: str) -> None:
    script = (STATIC / f"{name}.js").read_text()
    assert len(script.splitlines()) <= 160
    assert not re.search(r"innerHTML\s*=[^=]|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script)


async def test_pages_send_a_same_origin_referrer_policy(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert (await anna.client.get("/")).headers["referrer-policy"] == "same-origin"


async def test_pages_show_weak_durability(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "Weak durability" not in await anna.read("/")
        anna.app.state.weak_durability = "appendfsync is everysec"
        assert "appendfsync is everysec" in await anna.read("/")
        assert "appendfsync is everysec" in await anna.read("/runs/none", 404)
        assert "Sayso 0.2.0" in await anna.read("/")


async def test_only_run_and_item_pages_stream_a_run(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        assert 'data-stream="/live"' in await anna.read("/")
        follows = f'data-stream="/live?run={record.run.id}"'
        assert follows in await anna.read(f"/items/{record.id}/i1")
        assert follows in await anna.read(f"/runs/{record.run.id}")
    async with visit(settings, None) as guest:
        assert "data-stream" not in await guest.read("/sign-in")
