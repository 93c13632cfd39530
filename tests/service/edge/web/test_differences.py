"""Old and new texts in one view, with numbers, changed words and folds that count as unread. In a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.summaries import hash_display
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import begin_edit, press_approve, read_to_the_end, settle
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of
from tests.service.edge.web.test_shown import cells_of, shown_in

Open = Callable[..., Page]
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
REPLACE, WRITE = ToolDefinition(name="replace"), ToolDefinition(name="write_file")
NOTE = ToolDefinition(
    name="publish", parameters={"type": "object", "properties": {"body": {"type": "string"}}, "required": ["body"]}
)
OLD = "".join(f"value_{place} = {place}\n" for place in range(60))
PATCH, MULTI = ToolDefinition(name="apply_patch"), ToolDefinition(name="MultiEdit")
HUNKS = """--- a/config.py
+++ b/config.py
@@ -999999997,3 +999999997,3 @@
 retries = 3
-timeout = 30
+timeout = 60
--- old comment
+++ x
 \u200bend
"""
EDITS: list[JsonValue] = [
    {"old_string": "timeout = 30", "new_string": "timeout = 60", "replace_all": True},
    {"old_string": "import os\n", "new_string": ""},
    {"old_string": "", "new_string": "import sys\n"},
]
NEW = OLD.replace("value_30 = 30\n", "value_30 = thirty\n")


async def ask_replace(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a change of one line among sixty."""
    args: JsonObject = {"path": "/srv/config.py", "old_string": OLD, "new_string": NEW}
    return await asked(wiring, make_ask(REPLACE, args))


async def ask_note(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a long text."""
    await wiring.runs.save_definitions([NOTE])
    return await asked(wiring, make_ask(NOTE, {"body": OLD}))


@SIZES
def test_replaced_text_is_one_view_and_its_folds_are_unread(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(ask_replace)
    page = open_as(place_of(record), viewport=viewport)
    lines, approve = page.locator(".read .line"), page.locator(".approval .wide")
    assert [cells[0] for cells in cells_of(page)] == ["path", "old_string → new_string"]
    expect(lines.filter(visible=True)).to_have_count(8)
    expect(page.locator(".line.removed del")).to_have_text("30")
    expect(page.locator(".line.added ins")).to_have_text("thirty")
    assert page.locator(".line.added").get_attribute("data-number") == "31"
    expect(approve).to_have_text("Approve · 2 texts not yet shown")
    page.locator(".fold > summary").first.click()
    expect(lines.filter(visible=True)).to_have_count(35)
    read_to_the_end(page)
    expect(lines.filter(visible=True)).to_have_count(61)
    press_approve(page)
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    assert shown_in(site, record).values_shown == 3


def test_fold_that_was_never_opened_is_reported_as_unread(site: Site, open_as: Open) -> None:
    record = site.act(ask_replace)
    page = open_as(place_of(record))
    expect(page.locator(".approval .wide")).to_be_disabled()
    page.get_by_text("Deny…", exact=True).click()
    settle(page)
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
    assert shown_in(site, record).paths == ("path",)


def review_edit(page: Page) -> Locator:
    """Change one line of the text; return the button that approves the change."""
    begin_edit(page)
    page.get_by_label("body").fill(NEW)
    settle(page)
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.locator(".merged .line").filter(visible=True)).to_have_count(8)
    return page.get_by_role("button", name="Approve with 1 change")


def approve_as_shown(page: Page, approve: Locator, *, lines: int) -> None:
    """Read to the end, which shows so many lines of the change, and approve it."""
    read_to_the_end(page)
    expect(page.locator(".merged .line").filter(visible=True)).to_have_count(lines)
    settle(page)
    approve.click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_edit_of_a_text_not_yet_read_needs_every_line_shown(site: Site, open_as: Open) -> None:
    record = site.act(ask_note)
    page = open_as(place_of(record))
    approve = review_edit(page)
    expect(approve).to_have_text("Approve with 1 change · 2 texts not yet shown")
    approve_as_shown(page, approve, lines=61)


@SIZES
def test_edit_of_a_text_that_was_read_needs_its_changes_shown(
    site: Site, open_as: Open, viewport: ViewportSize
) -> None:
    """The equal lines stay folded. In a low window the end of the text is not in view at once."""
    record = site.act(ask_note)
    page = open_as(place_of(record), viewport=viewport)
    read_to_the_end(page)
    page.set_viewport_size({"width": viewport["width"], "height": 340})
    approve = review_edit(page)
    expect(approve).to_have_text("Approve with 1 change · 1 text not yet shown")
    approve_as_shown(page, approve, lines=8)
    assert shown_in(site, record).values_shown == 1


@SIZES
def test_patch_marks_changed_words_and_keeps_its_lines(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(
        place_of(site.act(lambda wiring: asked(wiring, make_ask(PATCH, {"patch": HUNKS})))), viewport=viewport
    )
    assert page.locator(".read .diff").text_content() == HUNKS.replace("\n", "↵\n").replace("\u200b", "⟨U+200B⟩")
    expect(page.locator(".line.mixed del")).to_have_text(["30"])
    expect(page.locator(".line.mixed ins")).to_have_text(["60"])
    assert page.locator(".line.mixed").first.evaluate("node => getComputedStyle(node).display") == "block"
    numbers = page.locator(".read .line").evaluate_all("nodes => nodes.map((node) => node.dataset.number)")
    assert numbers == ["", "", "", "999999997", "999999998", "999999998", "999999999", "999999999", ""]


@SIZES
def test_list_of_edits_is_one_view_for_each_entry(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(MULTI, {"file_path": "/srv/config.py", "edits": EDITS})))
    page = open_as(place_of(record), viewport=viewport)
    assert [cells[0] for cells in cells_of(page)] == [
        "file_path",
        "edits[0].old_string → edits[0].new_string",
        "edits[0].replace_all",
        "edits[1].old_string → edits[1].new_string",
        "edits[2].old_string → edits[2].new_string",
    ]
    assert page.locator(".what").get_attribute("data-display") == hash_display(cells_of(page))
    expect(page.locator("del, ins")).to_have_text(["30", "60", "import os↵\n", "import sys↵\n"])
    read_to_the_end(page)
    press_approve(page)
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    assert shown_in(site, record).values_shown == 8


def test_written_file_has_numbered_lines(site: Site, open_as: Open) -> None:
    args: JsonObject = {"path": "/srv/x.py", "content": "import os\n\nprint(os.getcwd())\n"}
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, make_ask(WRITE, args)))))
    lines = page.locator(".read .line")
    assert lines.evaluate_all("nodes => nodes.map((node) => node.dataset.number)") == ["1", "2", "3"]
    assert page.locator(".read .diff").text_content() == "import os↵\n↵\nprint(os.getcwd())↵\n"


def test_page_without_scripts_folds_no_line(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_replace)), java_script_enabled=False)
    expect(page.locator(".read .line").filter(visible=True)).to_have_count(61)
