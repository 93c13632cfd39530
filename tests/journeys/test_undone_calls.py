"""A call runs at once under a veto, and a reviewer has it undone with one press in a real browser."""

import asyncio
from pathlib import Path

from playwright.sync_api import expect

from demo.clients import RunSeen
from demo.journeys import connected
from demo.stacks import Stack
from launch.stops import wait_until
from tests.browser import running_browser
from tests.journeys.refunding_agents import LEDGER
from tests.journeys.stacks import PATIENCE_S, quick_stack
from tests.journeys.test_browser import sign_in

AGENTS = "demo.agents:support,tests.journeys.refunding_agents:refunder"
POLICY = """
version: 1
default: request_approval
rules:
  - {id: small, tool: refund, action: allow, reason: Small refunds run at once, terms: {veto: 10m}}
"""


def test_one_press_undoes_a_call_that_ran_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "refunding.yaml").write_text(POLICY)
    ledger = home / LEDGER
    with quick_stack(home, SAYSO_AGENTS=AGENTS, SAYSO_POLICY=str(home / "refunding.yaml")) as stack:
        run = asyncio.run(start(stack))
        with running_browser() as browser:
            page = browser.new_page(viewport={"width": 1024, "height": 768})
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            expect.set_options(timeout=PATIENCE_S * 1000)
            sign_in(page, stack)
            page.goto(f"{stack.url}/runs/{run.id}")
            expect(page.get_by_role("region", name="Result")).to_be_visible()
            expect(page.get_by_role("region", name="Calls that can be undone")).to_contain_text("receipt-A-1")
            assert ledger.read_text() == "paid A-1\n"
            page.goto(f"{stack.url}/undo")
            page.get_by_role("button", name="Undo").click()
            expect(page.locator("#standing")).to_contain_text("approved")
            assert wait_until(lambda: ledger.read_text() == "paid A-1\nback A-1 receipt-A-1\n", PATIENCE_S)
            page.goto(f"{stack.url}/undo")
            expect(page.get_by_text("There is no call that you can undo.")).to_be_visible()
            page.goto(f"{stack.url}/runs/{run.id}")
            expect(page.get_by_text("had a call undone")).to_be_visible()
            assert complaints == []
    assert ledger.read_text() == "paid A-1\nback A-1 receipt-A-1\n"


async def start(stack: Stack) -> RunSeen:
    async with connected(stack) as (agent, _):
        return await agent.start_run("refunder", "Refund A-1.", "Refund", key="start")
