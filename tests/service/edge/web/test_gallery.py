"""Every page is accessible, and fits the screen it is on."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.calendar import Hours, WorkingHours
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.wire.people import Preferences
from service.core.wiring import Wiring
from service.features.whatif.shadows import begin_file_shadow, end_shadow, read_shadows
from tests.browser import DESKTOP, PHONE
from tests.builders import person
from tests.service.edge.web.reading import begin_edit
from tests.service.edge.web.sites import PASSWORD, POLICY, Site, add_people
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, decide, finish, make_ask, place_of
from workers.outbox import Counting

NARROW: ViewportSize = {"width": 320, "height": 568}


async def gallery(wiring: Wiring) -> dict[str, str]:
    """One of everything, and where it is."""
    hard: JsonObject = {
        "path": "/srv/\u202etxt.exe",
        "long": "x" * 400,
        "lines": "a\n\tb",
        "deep": {"a": [{"b": None}]},
    }
    odd = make_ask(args=hard, index=1, resembles=("pay*", "refund-payment", "x" * 200))
    both = await asked(wiring, make_ask(), odd, title="A very long title " * 9)
    value = await asked(wiring, ask_value(choices=("HH-1", "HH-2")))
    quorum = await asked(wiring, make_ask(terms={"quorum": {"approve": 2}, "reviewers": ["anna", "ben"]}))
    ineligible = await asked(wiring, make_ask(terms={"reviewers": ["ben"]}))
    edited = await decide(wiring, await asked(wiring), "approve", args={**REFUND_ARGS, "amount": 7})
    await finish(wiring, edited, {"refund_id": "rf_1"})
    denied = await finish(wiring, await decide(wiring, await asked(wiring), "deny", message="Too old"))
    late = await asked(wiring, make_ask(terms={"timeout_s": 0}))
    await Counting(wiring).count_waiting()
    await furnish_account(wiring)
    return {
        "inbox": "/",
        "empty inbox": "/?skip=50",
        "searched inbox": "/?q=refund",
        "nothing found": "/?q=zebra",
        "search not understood": "/?q=is:odd",
        "open": place_of(both),
        "hard": place_of(both, "i2"),
        "value": place_of(value),
        "quorum": place_of(await decide(wiring, quorum, "approve")),
        "ineligible": place_of(ineligible),
        "edited": place_of(edited),
        "denied": place_of(denied),
        "late": place_of(late),
        "history": "/history",
        "nothing in the history": "/history?q=zebra",
        "insights": "/insights",
        "insights of months": "/insights?range=90d",
        "runs": "/runs",
        "no runs": "/runs?status=failed",
        "run": f"/runs/{edited.run.id}",
        "voice of a run": f"/runs/{edited.run.id}?voice=agent",
        "open run": f"/runs/{both.run.id}",
        "cancel": f"/runs/{both.run.id}/cancel",
        "me": "/me",
        "groups": "/groups",
        "operate": "/operate",
        "rules": "/rules",
        "rule": "/rules/never-over-1000",
        "removed rule": "/rules/refunds-over-100",
        "trial": f"/rules/-/try?item={both.id}/i2",
        "filtered": '/?q=is:mine tool:refund agent:"support-bot" is:unusual due:24h parcel',
        "not found": "/?q=run_none",
        "unknown filter": "/?q=is:odd",
        "missing": "/items/sus_none/i1",
        "nowhere": "/nowhere",
    }


async def furnish_account(wiring: Wiring) -> None:
    """Give anna a group that she edits, an address, quiet hours and an absence."""
    await add_people(wiring, "anna")
    await wiring.groups.create("payments", ("anna",), ("anna",), "root", WorkingHours(country="DE"))
    code = await wiring.contacts.create_code("anna", "telegram")
    await wiring.contacts.redeem_code("telegram", code.code, "4711", "anna on a phone")
    quiet = Preferences(time_zone="Europe/Berlin", quiet_hours=Hours(start="22:00", end="07:00"))
    await wiring.duty.save_preferences("anna", quiet, "anna")
    await wiring.duty.add_absence("anna", now_ms(), now_ms() + 86_400_000, None, "anna")


@pytest.mark.timeout(400)  # it opens every page and searches it for faults; over 120 s on a busy machine
@pytest.mark.parametrize(
    ("viewport", "scheme"), [(PHONE, "light"), (DESKTOP, "dark")], ids=["phone in light", "desktop in dark"]
)
def test_pages_are_accessible_and_fit_the_screen(
    site: Site, open_as: Callable[..., Page], viewport: ViewportSize, scheme: str
) -> None:
    places = site.act(gallery)
    page = open_as("/", viewport=viewport, color_scheme=scheme)
    page.emulate_media(reduced_motion="reduce")  # colours between two states are not those that people read
    for name, place in places.items():
        page.goto(place)
        check_page(page, name)
    page.goto("/")
    page.locator("#rows summary").click()
    page.keyboard.press("j")
    page.keyboard.press("?")
    check_page(page, "keys over the open inbox")
    page.goto(places["open"])
    begin_edit(page)
    page.get_by_label("amount").fill("a lot")
    check_page(page, "edit form")
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("alert")).to_be_visible()
    check_page(page, "marked form")
    page.get_by_label("amount").fill("7")
    page.get_by_label("note").fill("Sorry for the broken cup.\nHere is all of your money back.")
    page.get_by_role("button", name="Review changes").click()
    expect(page.get_by_role("button", name="Approve with 2 changes")).to_be_visible()
    check_page(page, "review of an edit")
    page.get_by_role("button", name="Back").click()
    page.get_by_text("Deny…", exact=True).click()
    check_page(page, "denial form")
    page.locator(".tools summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    check_page(page, "sign-in")
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("wrong password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    check_page(page, "failed sign-in")


@pytest.mark.parametrize(
    ("viewport", "scheme"), [(NARROW, "light"), (DESKTOP, "dark")], ids=["narrow in light", "desktop in dark"]
)
def test_pages_of_admins_are_accessible_and_fit_the_screen(
    site: Site, open_as: Callable[..., Page], viewport: ViewportSize, scheme: str
) -> None:
    places = site.act(admin_gallery)
    page = open_as("/", name="root", viewport=viewport, color_scheme=scheme)
    page.emulate_media(reduced_motion="reduce")
    for name, place in places.items():
        page.goto(place)
        for fold in page.locator("main details:not([open]) > summary").element_handles():
            fold.click()
        check_page(page, name)
    page.goto("/operate")
    page.get_by_label("What to freeze").select_option("all")
    page.get_by_label("Reason").fill("A drill")
    with page.expect_navigation():
        page.get_by_role("button", name="Freeze…").click()
    check_page(page, "freeze")
    page.goto("/people")
    with page.expect_navigation():
        page.get_by_role("button", name="Deactivate… ben").click()
    check_page(page, "deactivate")
    page.goto("/keys")
    with page.expect_navigation():
        page.get_by_role("button", name="Revoke…").first.click()
    check_page(page, "revoke")
    page.goto("/keys")
    page.get_by_text("Agent. It starts runs").click()
    page.get_by_role("textbox", name="Name").fill("support-bot")
    with page.expect_navigation():
        page.get_by_role("button", name="Create").click()
    check_page(page, "new key")


def test_bar_fits_each_screen_with_a_long_name(site: Site, open_as: Callable[..., Page]) -> None:
    name = "bartholomew-the-great"
    site.act(lambda wiring: wiring.reviewers.add(name, PASSWORD, ("reviewer", "admin")))
    page = open_as("/me", name=name)
    for width in (320, 360, 641, 700, 800, 1000):
        page.set_viewport_size({"width": width, "height": 568})
        check_fit(page, f"bar at {width}")
        links = page.locator(".bar :is(.brand, nav a, .tools > *)").filter(visible=True).all()
        boxes = [box for box in (link.bounding_box() for link in links) if box and box["y"] < 100]  # not at the bottom
        for one, other in pairwise(boxes):
            assert one["x"] + one["width"] <= other["x"] + 1, f"the bar's parts overlap at {width}"
        assert page.locator(".who").evaluate("node => node.clientWidth") >= 30, f"no name at {width}"


async def admin_gallery(wiring: Wiring) -> dict[str, str]:
    """Pages of admins, with people, keys in every state, an open item and a decided one."""
    await wiring.reviewers.add("root", PASSWORD, ("reviewer", "admin"))
    await add_people(wiring, "ben")
    key, _ = await wiring.api_keys.create("night-bot")
    await wiring.api_keys.rotate(key.id, 3600)
    gone, _ = await wiring.api_keys.create("old-bot")
    await wiring.api_keys.revoke(gone.id)
    await wiring.freezes.freeze("agent:night-bot", "It loops", person("root"))
    await asked(wiring)
    places = {"operate": "/operate", "people": "/people", "keys": "/keys", "first steps": "/welcome", "me": "/me"}
    await decide(wiring, await asked(wiring), "approve")
    for text in (POLICY, POLICY.replace("1000", "500")):
        if current := (await read_shadows(wiring)).current:
            await end_shadow(wiring, current.version, "root")
        await begin_file_shadow(wiring, text.replace("never", "hardly"), "policy.yaml", "root")
    return {**places, "shadow": "/rules/-/shadow"}


def test_pages_fit_the_smallest_screen(site: Site, open_as: Callable[..., Page]) -> None:
    places = site.act(gallery)
    page = open_as("/", viewport=NARROW)
    for name, place in places.items():
        page.goto(place)
        check_fit(page, name)
    page.goto(places["open"])
    begin_edit(page)
    check_fit(page, "edit form")


def check_page(page: Page, name: str) -> None:
    results = Axe().run(page, options={"resultTypes": ["violations"]})
    violations = [
        f"{one['id']}: {[node['target'] for node in one['nodes'][:3]]}" for one in results.response["violations"]
    ]
    assert violations == [], name
    check_fit(page, name)


def check_fit(page: Page, name: str) -> None:
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0, f"{name} is {over} pixels wider than its screen"
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, .button, .fold > summary, input:not([type=hidden]), select")]
            .map((node) => node.matches("[type=checkbox], [type=radio]") ? node.closest("label") : node)  // its target
            .filter((node) => node.checkVisibility() && node.getBoundingClientRect().height < 44)
            .map((node) => node.outerHTML)"""
    )
    assert small == [], name
