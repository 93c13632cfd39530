"""A person writes to a running agent in a real browser; its model gets the note once, although its worker is killed."""

import asyncio
from pathlib import Path

from playwright.sync_api import expect

from demo.clients import RunSeen
from demo.journeys import AGENT, connected
from demo.model import load_turns
from demo.stacks import Stack
from tests.browser import running_browser
from tests.journeys.stacks import PATIENCE_S, await_restart, kill, quick_stack
from tests.journeys.test_browser import open_from_inbox, sign_in
from tests.service.edge.web.reading import read_to_the_end

TEXT = 'Tell them that it was "urgent".\n<b>Then stop.</b>'


def test_note_of_a_person_reaches_the_agent_once(tmp_path: Path) -> None:
    with quick_stack(tmp_path / "home") as stack:
        run = asyncio.run(start(stack))
        with running_browser() as browser:
            page = browser.new_page(viewport={"width": 1024, "height": 768})
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            expect.set_options(timeout=PATIENCE_S * 1000)
            sign_in(page, stack)
            open_from_inbox(page, "bank_account.transfer")

            page.goto(f"{stack.url}/runs/{run.id}")
            page.get_by_label("Note to the agent", exact=True).fill(TEXT)
            page.get_by_role("button", name="Send note").click()
            notes = page.get_by_role("region", name="Notes to the agent")
            expect(notes.get_by_role("listitem")).to_contain_text("waits for the agent's next turn")
            expect(notes).to_contain_text("<b>Then stop.</b>")

            await_restart(stack, "worker", kill(stack, "worker"))
            open_from_inbox(page, "bank_account.transfer")
            read_to_the_end(page)
            page.get_by_role("button", name="Approve", exact=True).click()
            expect(page.locator("#standing")).to_contain_text("approved")

            page.goto(f"{stack.url}/runs/{run.id}")
            expect(notes.get_by_role("listitem")).to_contain_text("delivered")
            expect(page.get_by_role("region", name="Result")).to_be_visible()
            expect(page.locator("#timeline")).to_contain_text("The agent got the note of")
            assert complaints == []
        trail = asyncio.run(read_trail(stack, run))
    assert [kind for kind in trail if kind.startswith("note_")] == ["note_written", "note_delivered"]


async def start(stack: Stack) -> RunSeen:
    async with connected(stack) as (agent, _):
        return await agent.start_run(AGENT, load_turns()[0].request, "Money", key="start")


async def read_trail(stack: Stack, run: RunSeen) -> list[str]:
    async with connected(stack) as (agent, _):
        return [str(entry.type) async for entry in agent.follow(run.id)]
