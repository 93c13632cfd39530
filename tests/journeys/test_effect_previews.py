"""A reviewer decides with a preview in a real browser; the call runs only while its effect is the approved one."""

import asyncio
from pathlib import Path

from playwright.sync_api import Page, expect

from demo.clients import RunSeen
from demo.journeys import connected
from demo.stacks import Stack
from tests.browser import running_browser
from tests.journeys.stacks import PATIENCE_S, await_restart, kill, quick_stack
from tests.journeys.test_browser import open_from_inbox, sign_in
from tests.journeys.wiping_agents import ROWS
from tests.service.edge.web.reading import read_to_the_end

AGENTS = "demo.agents:support,tests.journeys.wiping_agents:wiper"
POLICY = "version: 1\ndefault: request_approval\nrules: []\n"


def test_call_runs_with_the_effect_that_was_approved(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "wiping.yaml").write_text(POLICY)
    rows = home / ROWS
    rows.write_text("old one\nnew two")
    with quick_stack(home, SAYSO_AGENTS=AGENTS, SAYSO_POLICY=str(home / "wiping.yaml")) as stack:
        run = asyncio.run(start(stack))
        with running_browser() as browser:
            page = browser.new_page(viewport={"width": 1024, "height": 768})
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            expect.set_options(timeout=PATIENCE_S * 1000)
            sign_in(page, stack)
            open_from_inbox(page, "delete_rows")
            effect = page.get_by_role("region", name="What it would do")
            expect(effect).to_contain_text("old one")

            rows.write_text("old one\nold three")
            await_restart(stack, "worker", kill(stack, "worker"))
            effect.get_by_role("button", name="Preview again").click()
            expect(effect).to_contain_text("old three")

            rows.write_text("old one\nold three\nold four")
            approve(page)
            open_from_inbox(page, "delete_rows")
            assert rows.read_text() == "old one\nold three\nold four"
            expect(effect).to_contain_text("This has changed since it was approved:")
            expect(effect).to_contain_text("old four")
            approve(page)
            page.goto(f"{stack.url}/runs/{run.id}")
            expect(page.get_by_role("region", name="Result")).to_be_visible()
            assert complaints == []
        assert rows.read_text() == ""


def approve(page: Page) -> None:
    read_to_the_end(page)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("#standing")).to_contain_text("approved")


async def start(stack: Stack) -> RunSeen:
    async with connected(stack) as (agent, _):
        return await agent.start_run("wiper", "Delete what is old.", "Delete", key="start")
