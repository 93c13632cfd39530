"""A new desk leads its admin through the first decision; each step ticks itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect
from rq import Worker

from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.records.suspensions import SuspensionRecord
from service.core.jobs import build_worker
from service.core.operations.runs import start_demo
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.operate.welcome import write_rule
from tests.builders import make_agent, register_agent
from tests.service.edge.web.sites import PASSWORD, Site, visit
from tests.service.edge.web.stories import asked, decide, finish, make_ask, pause
from tests.service.edge.web.test_freezes import make_admin


@contextmanager
def served(store_url: str) -> Iterator[None]:
    """A registered worker."""
    worker = build_worker(store_url, Worker, "w-1_first-steps")
    worker.register_birth()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        worker.register_death()  # type: ignore[no-untyped-call]


async def furnish(wiring: Wiring) -> None:
    """Register the demo agent and its key."""
    await register_agent(wiring)
    await make_agent(wiring, "demo")


async def test_first_steps_are_shown_until_the_first_decision(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert (await anna.client.get("/")).headers["location"] == "/welcome"
        assert "<code>make up</code> starts one" in await anna.read("/welcome")
        record = await asked(anna.wiring)
        page = await anna.read("/welcome")
        assert f'href="/items/{record.id}/i1"' in page
        assert page.count("Done</span>") == 1
        index = f"pip install --extra-index-url {settings.public_url}/sdk/"
        assert f"<code>{index} sayso</code>" in page
        assert f"<code>{index} &#39;sayso[cli,mcp]&#39;</code>" in page
        await decide(anna.wiring, record, "approve")
        assert "Inbox" in await anna.read("/")
        page = await anna.read("/welcome")
        assert page.count("Done</span>") == 2
        assert "args.amount &gt;= 250" in page


async def test_skip_leads_to_the_inbox(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await anna.send("/welcome/skip", 403, csrf="x")
        assert await anna.send("/welcome/skip") == "/"
        assert "All done." in await anna.read("/")


async def test_reviewer_is_not_led_through_the_first_steps(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "All done." in await anna.read("/")
        await anna.read("/welcome", 403)
        await furnish(anna.wiring)
        await anna.send("/welcome/demo", 403)
        assert await anna.wiring.runs.list_ids(5) == []


async def test_demo_is_started_once(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await furnish(anna.wiring)
        await anna.send("/welcome/demo", 403, csrf="x")
        assert await anna.wiring.runs.list_ids(5) == []
        assert await anna.send("/welcome/demo") == "/welcome"
        await anna.send("/welcome/demo")
        assert len(await anna.wiring.runs.list_ids(5)) == 1


async def test_demo_without_an_agent_is_explained(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "Start Sayso with `make up`" in await anna.send("/welcome/demo", 409)


@pytest.mark.parametrize("tool", ["bank_account.transfer", 'odd: "name" # \\ {}', "x" * 200])
async def test_written_rule_is_valid(settings: Settings, tool: str) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        item = record.items[0]
        named = item.model_copy(update={"tool": item.tool.model_copy(update={"name": tool})})
        text = "version: 1\ndefault: deny\nrules:\n" + "\n".join(f"  {line}" for line in write_rule(named).splitlines())
        (rule,) = parse_rulebook(text.encode(), file="policy.yaml").rules
        assert rule.condition.tool_name == tool
        assert rule.condition.when == "args.amount >= 250"


def test_first_steps_tick_as_the_run_goes_on(site: Site, open_as: Callable[..., Page]) -> None:
    async def begin(wiring: Wiring) -> None:
        await furnish(wiring)
        await wiring.reviewers.add("root", PASSWORD, ("reviewer", "admin"))

    async def suspend(wiring: Wiring) -> SuspensionRecord:
        started = await start_demo(wiring, "root")  # the run of the button
        return await pause(wiring, started.record, (make_ask(),))

    site.act(begin)
    with served(site.settings.store_url):
        page = open_as("/", name="root")
        expect(page.get_by_role("heading", name="First steps")).to_be_visible()
        page.get_by_role("button", name="Start the demo agent").click()
        expect(page.get_by_role("heading", name="Start the demo agent Done")).to_be_visible()
    record = site.act(suspend)
    page.locator(".items").get_by_role("link").click()
    page.get_by_role("button", name="Approve").first.click()
    page.get_by_role("link", name="Go on with the first steps").click()
    expect(page.get_by_role("heading", name="Decide what the agent may do Done")).to_be_visible()
    expect(page.get_by_role("heading", name="See that exactly this ran Done")).to_have_count(0)

    async def end(wiring: Wiring) -> None:
        decided = (await wiring.desk.suspensions.read(record.id)).record
        await finish(wiring, decided, {"transferred": 5000})

    site.act(end)
    expect(page.get_by_role("heading", name="See that exactly this ran Done")).to_be_visible()
    page.get_by_role("link", name="Open the receipt").click()
    expect(page.get_by_role("heading", name="root approved this")).to_be_visible()
