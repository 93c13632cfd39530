"""A person decides in a real browser, and sees on the page what the worker made of it."""

import asyncio
from pathlib import Path

from playwright.sync_api import Page, expect

from demo.agents import Effects
from demo.clients import RunSeen
from demo.journeys import AGENT, REVIEWER, connected
from demo.model import load_turns
from demo.stacks import Stack
from tests.browser import running_browser
from tests.journeys.stacks import PATIENCE_S, quick_stack
from tests.service.edge.web.reading import approve_edit, read_to_the_end, settle

BANK, MAILS, _, HOTELS, _ = load_turns()
DENIAL = "Not to Jane."


def test_approve_with_an_edit_approve_deny_and_give_a_value(tmp_path: Path) -> None:
    with quick_stack(tmp_path / "home") as stack:
        run = asyncio.run(start(stack))
        with running_browser() as browser:
            page = browser.new_page(viewport={"width": 1024, "height": 768})
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            expect.set_options(timeout=PATIENCE_S * 1000)

            sign_in(page, stack)
            approve_with_an_edit(page)
            approve(page)
            deny(page)
            give_a_value(page)
            page.goto(f"{stack.url}/runs/{run.id}")
            expect(page.get_by_role("region", name="Result")).to_contain_text("5 of 6 calls succeeded.")
            assert complaints == []

    done = [(effect.tool, effect.args) for effect in Effects(stack.home).read()]
    assert [args["amount"] for tool, args in done if tool == "bank_account.transfer"] == [12.5]
    assert [args["to"] for tool, args in done if tool == "send_email"] == ["john.doe@example.com"]
    assert sorted(str(args["check_out"]) for tool, args in done if tool == "hotel_booking.book") == [
        "2022-05-07",
        "2022-06-10",
    ]


async def start(stack: Stack) -> RunSeen:
    text = "\n".join(turn.request for turn in (BANK, MAILS, HOTELS))
    async with connected(stack) as (agent, _):
        return await agent.start_run(AGENT, text, "Money, mail and a bed", key="start")


def sign_in(page: Page, stack: Stack) -> None:
    page.goto(stack.url)
    page.get_by_label("Name").fill(REVIEWER)
    page.get_by_label("Password").fill(stack.admin_password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Skip").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


def approve_with_an_edit(page: Page) -> None:
    open_from_inbox(page, "bank_account.transfer")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("amount").fill("12.5")
    approve_edit(page)
    expect(page.locator("#standing")).to_contain_text('"transferred": 12.5')


def approve(page: Page) -> None:
    open_from_inbox(page, "john.doe@example.com")
    read_to_the_end(page)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("#standing")).to_contain_text("approved")


def deny(page: Page) -> None:
    open_from_inbox(page, "jane.doe@example.com")
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill(DENIAL)
    page.get_by_role("button", name="Deny").click()
    expect(page.locator("#standing .given")).to_contain_text(DENIAL)


def give_a_value(page: Page) -> None:
    open_from_inbox(page, "hotel_booking.book")
    page.get_by_label("check_out").fill("2022-05-07")
    read_to_the_end(page)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#standing")).to_contain_text('"until": "2022-05-07"')


def open_from_inbox(page: Page, words: str) -> None:
    """Open the inbox, wait there until the row with these words comes by itself, and open its item."""
    page.get_by_role("link", name="Inbox").first.click()
    page.locator("#rows li", has_text=words).get_by_role("link").click()
    expect(page.get_by_role("heading", name="Your decision")).to_be_visible()
    settle(page)
