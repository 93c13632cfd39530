"""A reviewer requests changes in a real browser; the agent, killed meanwhile, comes back with a version that runs."""

from pathlib import Path

from playwright.sync_api import Page, expect

from demo.stacks import Stack
from tests.browser import running_browser
from tests.journeys.stacks import PATIENCE_S, quick_stack
from tests.journeys.test_browser import open_from_inbox, sign_in
from tests.journeys.test_gated_scripts import await_pending, end_of, reviewer, start
from tests.service.edge.web.reading import read_to_the_end

SCRIPT = """
import sys
from sayso import ChangesRequested, gate

@gate(key="refund-{amount}", thread_id="orders")
def refund(amount: float) -> str:
    with open(sys.argv[1], "a") as paid:
        print(amount, file=paid)
    return f"paid {amount:g}"

amount = 250.0
while True:
    try:
        print(refund(amount))
        break
    except ChangesRequested as asked:
        assert asked.paths == ("args.amount",), asked.paths
        amount -= 130
"""
DECIDED = 12


def test_new_version_runs_and_the_first_is_an_override(tmp_path: Path) -> None:
    paid = tmp_path / "paid"
    with quick_stack(tmp_path / "home") as stack, running_browser() as browser:
        page = browser.new_page(viewport={"width": 1024, "height": 768})
        expect.set_options(timeout=PATIENCE_S * 1000)
        sign_in(page, stack)
        decide_some(stack)
        script = start(stack, SCRIPT, str(paid))
        with reviewer(stack) as client:
            run = await_pending(client).run.id
            page.goto(f"{stack.url}/runs/{run}")
            expect(page.get_by_role("region", name="Requests")).to_contain_text("admin decided 100% of them.")
            script.kill()
            script.wait()
            request_changes(page)
            script = start(stack, SCRIPT, str(paid))
            await_pending(client)
            approve_version(page)
            assert end_of(script) == "paid 120"
            (override,) = client.overrides().lines
    assert paid.read_text().split() == ["120.0"]
    assert (override.kind, override.args) == ("changes", {"amount": 250.0})
    assert "120 is enough" in str(override.reason)


def decide_some(stack: Stack) -> None:
    """Decide calls of the tool, so that there is something to forecast from."""
    calls = "; ".join(f"refund({place})" for place in range(DECIDED))
    script = start(stack, f"{SCRIPT.split('amount = 250', maxsplit=1)[0]}\n{calls}", "/dev/null")
    with reviewer(stack) as client:
        for _ in range(DECIDED):
            waiting = await_pending(client)
            client.decide(waiting.id, waiting.items[0], "approve")
    end_of(script)


def request_changes(page: Page) -> None:
    open_from_inbox(page, "refund")
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_text("Request changes instead").click()
    page.get_by_label("amount", exact=True).check()
    page.get_by_label("Reason").fill("120 is enough")
    page.get_by_role("button", name="Request changes").click()
    expect(page.get_by_role("heading", name="admin requested changes")).to_be_visible()


def approve_version(page: Page) -> None:
    open_from_inbox(page, "refund")
    banner = page.get_by_label("Changes requested", exact=True)
    expect(banner).to_contain_text("A new version: admin requested changes")
    expect(banner.locator("ins")).to_contain_text("120")
    read_to_the_end(page)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("#standing")).to_contain_text("approved")
