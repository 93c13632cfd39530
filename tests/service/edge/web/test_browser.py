"""The dashboard in a real browser, with scripts and without."""

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.deadlines import describe_ago, describe_due, describe_span
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.builders import person
from tests.service.edge.web.reading import approve_edit, begin_edit, unfold
from tests.service.edge.web.sites import PASSWORD, Site, add_people
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, decide, finish, make_ask, place_of


def now(site: Site, record: SuspensionRecord) -> SuspensionRecord:
    async def read(wiring: Wiring) -> SuspensionRecord:
        found = await wiring.desk.suspensions.read(record.id)
        assert found.record is not None
        return found.record

    return site.act(read)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_reviewer_approves_with_an_edit_denies_and_gives_a_value(browser: Browser, site: Site, scripts: bool) -> None:
    async def prepare(wiring: Wiring) -> list[SuspensionRecord]:
        await add_people(wiring, "anna")
        return [
            await asked(wiring),
            await asked(wiring, make_ask(terms={"timeout_s": 90})),
            await asked(wiring, ask_value()),
        ]

    edited, denied, valued = site.act(prepare)
    with browser.new_context(base_url=site.url, viewport=PHONE, java_script_enabled=scripts) as context:
        page = context.new_page()
        page.goto(place_of(edited))
        page.get_by_label("Name").fill("anna")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Refund payment EUR 250.00")
        begin_edit(page)
        page.get_by_label("amount").fill("120")
        page.get_by_label("currency").select_option("CHF")
        approve_edit(page)
        expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()

        page.get_by_role("link", name="Inbox").first.click()
        page.get_by_role("link", name="Refund payment").click()
        page.get_by_text("Deny…", exact=True).click()
        page.get_by_label("Reason").fill("Too old")
        page.get_by_role("button", name="Deny").click()
        expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()

        page.get_by_role("link", name="Inbox").first.click()
        page.get_by_role("link", name="book_hotel").click()
        page.get_by_label("loyalty_code").fill("HH-7731")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()
        page.locator(".tools summary").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()

    outcomes = [now(site, record).items[0].outcome for record in (edited, denied, valued)]
    first, second, third = outcomes
    assert first is not None
    assert first.args == {**REFUND_ARGS, "amount": 120, "currency": "CHF"}
    assert second is not None
    assert (second.verdict, second.message) == ("denied", "Too old")
    assert third is not None
    assert third.value == "HH-7731"


def test_inbox_refreshes_without_a_reload(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/")
    expect(page.get_by_text("All done.")).to_be_visible()
    page.evaluate("window.same = true")
    record = site.act(asked)
    expect(page.get_by_role("link", name="Refund payment")).to_be_visible()
    expect(page).to_have_title("(1) Inbox · Sayso")
    expect(page.locator("#pending")).to_have_text("1")
    expect(page.locator("#say")).to_have_text("1 item waits for you.")
    page.get_by_role("link", name="Refund payment").focus()
    site.act(asked)
    expect(page.get_by_role("button", name="1 new · Show")).to_be_visible()
    assert page.evaluate("document.activeElement.getAttribute('href')") == place_of(record)
    page.get_by_role("button", name="1 new · Show").click()
    expect(page.get_by_role("link", name="Refund payment")).to_have_count(2)
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.get_by_role("link", name="Refund payment")).to_have_count(1)
    expect(page).to_have_title("(1) Inbox · Sayso")
    assert page.evaluate("window.same")


def test_receipt_refreshes_until_the_result(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    page.get_by_role("button", name="Approve EUR 250.00", exact=True).click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
    expect(page.get_by_text("The run resumed").first).to_be_visible()
    site.act(lambda wiring: finish(wiring, record, {"refund_id": "rf_81"}))
    expect(page.locator(".receipt").get_by_text("refund_payment ran in 12 ms")).to_be_visible()
    expect(page.locator(".receipt").get_by_text("rf_81")).to_be_visible()
    expect(page.locator(".receipt").get_by_text("completed")).to_be_visible()
    expect(page.locator("#timeline").get_by_text("The run completed")).to_be_visible()


def test_open_item_page_closes_after_another_decision(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    expect(page.get_by_role("button", name="Approve EUR 250.00", exact=True)).to_be_visible()
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.get_by_role("heading", name="ben denied this")).to_be_visible()
    expect(page.get_by_role("button", name="Approve EUR 250.00", exact=True)).to_have_count(0)


def test_closed_item_loses_its_buttons_and_keeps_the_input(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("I am still typ")
    site.act(lambda wiring: decide(wiring, record, "approve"))
    expect(page.locator("#notice")).to_contain_text("ben approved this. You can no longer send your input.")
    expect(page.get_by_label("Your input")).to_have_value("I am still typ")
    expect(page.locator(".decide").get_by_text("ben approved this")).to_be_visible()
    expect(page.locator(".decide form")).to_have_count(0)


def test_rejected_form_keeps_its_input(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, ask_value()))
    page = open_as(place_of(record))
    page.get_by_label("loyalty_code").fill("HH")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#v0-problem")).to_be_visible()
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.locator("#notice")).to_contain_text("ben denied this. You can no longer send your input.")
    expect(page.get_by_label("Your input")).to_have_value("HH")


def test_filled_form_without_focus_is_not_lost(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, ask_value()))
    page = open_as(place_of(record))
    page.get_by_label("loyalty_code").fill("HH-77")
    page.get_by_role("heading", level=1).click()
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.locator("#notice")).to_contain_text("ben denied this")
    expect(page.get_by_label("Your input")).to_have_value("HH-77")
    expect(page.get_by_role("link", name="Next item")).to_have_count(0)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_input_survives_the_end_of_its_session(site: Site, open_as: Callable[..., Page], scripts: bool) -> None:
    async def prepare(wiring: Wiring) -> SuspensionRecord:
        await add_people(wiring, "carla")
        return await asked(wiring)

    record = site.act(prepare)
    page = open_as(place_of(record), java_script_enabled=scripts, viewport=PHONE)
    begin_edit(page)
    page.get_by_label("note").fill("One\n\n  <b>two</b>")
    page.get_by_label("amount").fill("12,5")
    page.context.clear_cookies()
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("alert")).to_contain_text("to continue with your input")
    for password in ("wrong password", PASSWORD):
        page.get_by_label("Name").fill("carla")
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("You have signed in again")
    expect(page.get_by_label("note")).to_have_value("One\n\n  <b>two</b>")
    expect(page.get_by_label("amount")).to_have_value("12,5")
    assert now(site, record).items[0].open
    page.get_by_label("amount").fill("12.5")
    approve_edit(page)
    expect(page.get_by_role("heading", name="carla approved this with")).to_be_visible()
    assert now(site, record).items[0].decisions[0].args == REFUND_ARGS | {"note": "One\n\n  <b>two</b>", "amount": 12.5}


def test_sign_in_in_another_tab_keeps_the_input(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("Too old")
    page.context.clear_cookies()
    site.act(lambda wiring: decide(wiring, record, "approve"))
    expect(page.locator("#notice")).to_contain_text("Your input stays on this page.")
    with page.context.expect_page() as opened:
        page.locator("#notice").get_by_role("link", name="Sign in").click()
    expect(opened.value.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_label("Reason")).to_have_value("Too old")


def test_chosen_extension_survives_a_refresh(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"extend_by_s": 90_000}), make_ask(index=1)))
    page = open_as(place_of(record))
    unfold(page, "Extend the deadline")
    page.get_by_label("Extension").select_option(index=2)
    chosen = page.get_by_label("Extension").input_value()
    site.act(lambda wiring: decide(wiring, record, "approve", item_id="i2"))
    expect(page.locator("#siblings")).to_contain_text("approved")
    expect(page.get_by_label("Extension")).to_have_value(chosen)


def test_extending_keeps_the_input(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"extend_by_s": 90_000})))
    page = open_as(place_of(record))
    unfold(page, "Extend the deadline")
    page.get_by_role("button", name="Extend").click()
    expect(page.locator("#timeline")).to_contain_text("anna extended the deadline")
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("Half a reason")
    page.get_by_role("link", name="Back").click()
    begin_edit(page)
    page.get_by_label("amount").fill("12,5")
    unfold(page, "Extend the deadline")
    page.get_by_role("button", name="Extend").click()
    expect(page.locator("#timeline").get_by_text("anna extended the deadline")).to_have_count(2)
    expect(page.get_by_label("amount")).to_have_value("12,5")
    page.get_by_label("amount").fill("12.5")
    page.get_by_text("Deny…", exact=True).click()
    expect(page.get_by_label("Reason")).to_have_value("Half a reason")
    page.get_by_role("link", name="Back").click()
    approve_edit(page)
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()


def test_freezes_refresh_without_a_reload(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/operate")
    expect(page.get_by_text("Nothing is frozen.")).to_be_visible()
    freeze = site.act(lambda wiring: wiring.freezes.freeze("tool:refund_payment", "Wrong", person("root")))
    expect(page.locator("#now")).to_contain_text("the tool refund_payment, by root")
    site.act(lambda wiring: wiring.freezes.unfreeze(freeze.id, person("root")))
    expect(page.get_by_text("Nothing is frozen.")).to_be_visible()
    expect(page.locator("#past")).to_contain_text("unfrozen by root")


def test_open_item_page_shows_a_held_deadline(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    expect(page.locator(".now")).to_contain_text("if nobody answers (in ")
    freeze = site.act(lambda wiring: wiring.freezes.freeze("agent:support", "Wrong", person("root")))
    expect(page.locator(".now")).to_contain_text("left, on hold")
    expect(page.locator("#frost")).to_contain_text("the agent support")
    site.act(lambda wiring: wiring.freezes.unfreeze(freeze.id, person("root")))
    expect(page.locator(".now")).not_to_contain_text("on hold")


def test_hidden_tab_closes_its_stream(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/sign-out")
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => !window.seen })")
    streams: list[str] = []
    page.on("request", lambda request: streams.append(page.url) if request.resource_type == "eventsource" else None)
    record = site.act(asked)
    for place in (place_of(record), "/runs"):
        page.goto(place)
    with page.expect_request("**/live?*"):
        page.evaluate("window.seen = true; document.dispatchEvent(new Event('visibilitychange'))")
    with page.expect_request("**/live?*"):
        page.goto("/")  # its title tells in the background what waits
    # The inbox puts the item that it opens beside the list into its address, before the stream or after it.
    assert [urlsplit(url).path for url in streams] == ["/runs", "/"]


def test_script_counts_down_and_shows_local_times(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record), timezone_id="Asia/Kathmandu")
    left = page.locator("[data-left]").first
    before = left.inner_text()
    expect(left).not_to_have_text(before)
    shown = page.locator("#timeline [data-hour]").first
    assert shown.inner_text() != (shown.get_attribute("title") or "")[11:19]
    assert "UTC" not in shown.inner_text()


def test_script_and_pages_use_the_same_words_for_times(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/")
    spans = [500, 12_000, 60_000, 250_900, 3_599_999, 3_600_000, 7_205_000, 86_399_000, 86_400_000, 266_400_000]
    page.evaluate(
        """spans => {
            const now = Number(document.body.dataset.now);
            for (const span of spans) {
                const node = document.createElement("time");
                node.className = "probe";
                node.dataset.ago = now - span;
                document.querySelector("main").append(node);
            }
        }""",
        spans,
    )
    expect(page.locator(".probe").first).not_to_be_empty()
    shown = page.locator(".probe").all_inner_texts()
    possible = [{describe_ago(0, span + late) for late in range(0, 8000, 500)} for span in spans]
    assert [words in allowed for words, allowed in zip(shown, possible, strict=True)] == [True] * len(spans)
    assert describe_span(250_900) == "4 min 10 s"


def test_script_and_pages_use_the_same_words_for_deadlines(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/", timezone_id="UTC")
    spans = [-1, 45_000, 250_900, 599_000, 3_600_000, 90_000_000, 500_000_000, 3_000_000_000]
    page.evaluate(
        """spans => {
            const now = Number(document.body.dataset.now);
            for (const span of spans) {
                const node = document.createElement("time");
                node.className = "probe";
                node.dataset.dueAt = now + span;
                document.querySelector("main").append(node);
            }
        }""",
        spans,
    )
    expect(page.locator(".probe").first).not_to_be_empty()
    shown = page.locator(".probe").all_inner_texts()
    now = int(page.locator("body").get_attribute("data-now") or "")
    possible = [
        {describe_due(now + span, now + late).removesuffix(" UTC") for late in range(0, 8000, 500)} for span in spans
    ]
    assert [words in allowed for words, allowed in zip(shown, possible, strict=True)] == [True] * len(spans)


def test_keyboard_reaches_everything(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as(place_of(site.act(asked)))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(16):  # the bar comes last, after the views, questions, files, and comments
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Approve EUR 250.00":
            break
    expect(page.get_by_role("button", name="Approve EUR 250.00", exact=True)).to_be_focused()
    expect(page.get_by_role("button", name="Approve EUR 250.00", exact=True)).to_be_enabled()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
