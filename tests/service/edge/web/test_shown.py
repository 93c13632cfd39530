"""What the page had shown is recorded with the decision, and hasty presses do nothing: in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Decision, Shown
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.summaries import hash_display, list_values
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import POLICY, Site
from tests.service.edge.web.stories import REFUND_ARGS, asked, decide, make_ask, place_of
from tests.service.edge.web.test_read_to_the_end import LONG, SHELL

Open = Callable[..., Page]

VALUES = len(list_values(REFUND_ARGS))

HOSTILE: JsonObject = {
    "path": "/srv/\u202etxt.exe",
    "host": "hooks.ex\u0430mple.net",
    "lines": "a\n\tb" + "\n" * 40 + "c\r\x1b[2K",
    "deep": {"a.b": [{"c\u200bd": None}], "e": [], "number": 4890.5, "text": "4890.5"},
    "list": ["a\u200bb", 1, None],
    "table": [{"sku": "\u0430b", "count": 1}, {"count": 22}, {"sku": "", "count": 3}],
}


def decisions_of(site: Site, record: SuspensionRecord) -> tuple[Decision, ...]:
    async def read(wiring: Wiring) -> tuple[Decision, ...]:
        return (await wiring.desk.suspensions.read(record.id)).record.items[0].decisions

    return site.act(read)


def shown_in(site: Site, record: SuspensionRecord) -> Shown:
    """What anna's decision, the latest, has recorded."""
    shown = decisions_of(site, record)[-1].shown
    assert shown is not None
    return shown


def approve(page: Page) -> Locator:
    return page.locator(".approval .wide")


def cells_of(page: Page) -> list[list[str]]:
    """The texts of each row; a table inside has its own cells."""
    rows = page.locator(":is(#call > table, #call > .first > table, #call > .unchanged > table) > tbody > tr").all()
    return [row.locator("> th, > td:not(:has(table)), table :is(th, td)").all_text_contents() for row in rows]


def test_approval_records_what_the_page_had_shown(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    expect(page.locator(".counted")).to_have_text(f"All {VALUES} values shown")
    cells = cells_of(page)
    approve(page).click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    shown = shown_in(site, record)
    assert (shown.values, shown.values_shown) == (VALUES, VALUES)
    assert set(shown.paths) == {leaf.path for leaf in list_values(REFUND_ARGS)}
    assert shown.display_hash == hash_display(cells)
    expect(page.locator("#facts")).to_contain_text(f"{shown.values} of {shown.values} values shown, ")

    async def read(wiring: Wiring) -> Any:
        return [entry.data for entry in await wiring.runs.trail(record.run.id) if entry.type == "decision_recorded"]

    (recorded,) = site.act(read)
    assert recorded["shown"] == shown.model_dump(mode="json")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_display_hash_is_of_the_texts_on_the_page(site: Site, open_as: Open, scripts: bool) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(args=HOSTILE)))
    page = open_as(place_of(record), java_script_enabled=scripts)
    assert page.locator(".what").get_attribute("data-display") == hash_display(cells_of(page))


def test_hash_of_another_version_is_of_its_comparison(site: Site, open_as: Open) -> None:
    async def edited(wiring: Wiring) -> SuspensionRecord:
        terms = {"quorum": {"approve": 2}, "reviewers": ["anna", "ben"]}
        record = await asked(wiring, make_ask(terms=terms))
        rest = {name: value for name, value in REFUND_ARGS.items() if name != "notify"}
        return await decide(wiring, record, "approve", args={**rest, "note": "a\nb", "lines": [{}, {}]})

    record = site.act(edited)
    page = open_as(place_of(record))
    page.get_by_role("link", name="ben’s version").click()
    cells = cells_of(page)
    read_to_the_end(page)
    expect(page.locator(".counted")).to_have_text(f"All {len(cells)} values shown")
    assert {len(row) for row in cells} == {2, 3}
    page.get_by_role("button", name="Approve ben’s version").click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    shown = shown_in(site, record)
    assert (shown.display_hash, shown.values_shown) == (hash_display(cells), len(cells))


def test_early_denial_records_the_values_not_in_view(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(SHELL, {"command": LONG, "cwd": "/srv"})))
    page = open_as(place_of(record))
    expect(page.locator(".counted")).to_be_empty()
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
    shown = shown_in(site, record)
    assert shown.values == 2
    assert shown.values_shown == len(shown.paths) < 2
    assert "command" not in shown.paths
    expect(page.locator("#facts")).to_contain_text(f"{shown.values_shown} of 2 values shown")


def test_page_without_scripts_is_not_measured(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(place_of(record), java_script_enabled=False)
    approve(page).click()
    expect(page.locator("#facts")).to_contain_text("what was shown was not measured")
    assert [one.shown for one in decisions_of(site, record)] == [None]


def test_look_time_counts_from_the_opening_over_reloads(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as("about:blank")
    page.clock.install()
    page.goto(place_of(record))
    page.clock.fast_forward(41_000)
    page.reload()
    page.clock.fast_forward(20_000)
    approve(page).click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    assert 61_000 <= shown_in(site, record).look_ms <= 86_400_000


def test_secrets_are_measured_only_after_they_are_shown(site: Site, open_as: Open) -> None:
    ask = make_ask(terms={"secrets": ["order_id"], "quorum": {"approve": 2, "deny": 2}})
    record = site.act(lambda wiring: asked(wiring, ask))
    other = open_as(place_of(record), name="ben")
    expect(other.locator(".counted")).to_be_empty()
    other.get_by_text("Deny…", exact=True).click()
    other.get_by_role("button", name="Deny").click()
    expect(other.locator("#facts")).to_contain_text("what was shown was not measured")
    page = open_as(place_of(record))
    page.get_by_role("button", name="Show the secret values first").click()
    read_to_the_end(page)
    approve(page).click()
    expect(page.locator("#facts")).to_contain_text(f"{VALUES} of {VALUES} values shown")
    assert shown_in(site, record).paths == ()


def test_pointer_within_400_ms_of_the_opening_is_ignored(site: Site, open_as: Open) -> None:
    """Open the item, press Approve 399 ms later, and press once more after 400 ms."""
    record = site.act(asked)
    page = open_as("about:blank")
    page.clock.install()
    page.goto(place_of(record))
    expect(page.locator(".decide")).not_to_have_attribute("aria-disabled", "true")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    page.goto(place_of(record))
    expect(page.locator(".counted")).not_to_be_empty()
    page.clock.run_for(399)
    hit(page, approve(page))
    expect(page.locator(".decide")).to_have_attribute("aria-disabled", "true")
    assert decisions_of(site, record) == ()
    page.clock.run_for(1)
    hit(page, approve(page))
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def hit(page: Page, button: Locator) -> None:
    """Press where a button is with a pointer, whether it is disabled or not."""
    box = button.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_jumping_press_that_comes_late_does_not_approve(site: Site, open_as: Open) -> None:
    """Press to reach the last text twice: the second press meets Approve within 400 ms, and sends nothing."""
    record = site.act(lambda wiring: asked(wiring, make_ask(SHELL, {"command": LONG})))
    page = open_as("about:blank")
    page.clock.install()
    page.goto(place_of(record))
    expect(approve(page)).to_have_text("Approve · 1 text not yet shown")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    page.locator(".read td").evaluate("node => scrollTo(0, node.getBoundingClientRect().bottom + scrollY - 100)")
    expect(approve(page)).to_have_text("Approve")
    hit(page, approve(page))
    assert decisions_of(site, record) == ()
    page.clock.run_for(400)
    hit(page, approve(page))  # the script deletes files, so the page asks once more
    page.clock.run_for(400)
    hit(page, approve(page))
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_second_press_on_deny_opens_the_form_and_sends_nothing(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as("about:blank")
    page.clock.install()
    page.goto(place_of(record))
    expect(approve(page)).to_be_enabled()
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    page.get_by_text("Deny…", exact=True).click()
    hit(page, page.get_by_role("button", name="Deny"))
    assert decisions_of(site, record) == ()
    page.clock.run_for(400)
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()


def test_page_opens_again_when_a_rule_asks_about_edited_arguments(site: Site, open_as: Open) -> None:
    """Another reviewer's edit needs a new decision: the buttons never belong to other arguments than the page shows."""
    site.settings.policy.write_text(
        POLICY + "  - {id: large, tool: refund_payment, when: args.amount > 500, action: request_approval}\n"
    )
    record = site.act(asked)
    page = open_as(place_of(record))
    expect(approve(page)).to_be_enabled()
    site.act(lambda wiring: decide(wiring, record, "approve", args={**REFUND_ARGS, "amount": 700}))
    expect(page.locator(".read td", has_text="700")).to_be_visible()
    approve(page).click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


@pytest.mark.parametrize("viewport", [PHONE, None], ids=["phone", "desktop"])
def test_count_stands_beside_the_buttons_or_above_them(site: Site, open_as: Open, viewport: Any) -> None:
    page = open_as(place_of(site.act(asked)), **({"viewport": viewport} if viewport else {}))
    expect(page.locator(".counted")).to_be_visible()
    bar, words = page.locator("#answers").bounding_box(), page.locator(".counted").bounding_box()
    assert bar is not None
    assert words is not None
    if viewport:
        assert words["y"] + words["height"] <= bar["y"]
    else:
        assert words["x"] >= bar["x"] + bar["width"]
