"""The page that says who is asked when, without scripts."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sayso.core.calendar import WorkingHours
from sayso.wire.people import Preferences
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.sites import Site, add_people, settings_for, visit
from tests.service.edge.web.test_freezes import make_admin
from tests.service.edge.web.test_gallery import check_page

CHANNELS = """\
channels:
  chat: {kind: telegram, bot_token: "123456:t0ken-canary-sample-0000"}
"""
RULES = """\
version: 1
default: request_approval
rules:
  - {id: reads, tool: read, action: allow}
  - id: refunds
    tool: refund
    action: request_approval
    terms:
      reviewers: ["group:payments"]
      channels: [chat]
      timeout_s: 300000
      escalate: [{after_s: 600, reviewers: [ben]}]
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with a channel and a rule that escalates."""
    channels = tmp_path / "channels.yaml"
    channels.write_text(CHANNELS)
    found = settings_for(clean_store_url, tmp_path, channels=str(channels))
    found.policy.write_text(RULES)
    return found


async def make_team(wiring: Wiring) -> None:
    """Make anna, who is in a group with working hours, and ben."""
    await add_people(wiring, "ben")
    await wiring.groups.create("payments", ("anna",), (), "root", WorkingHours())
    for name in ("anna", "ben"):
        code = await wiring.contacts.create_code(name, "chat")
        await wiring.contacts.redeem_code("chat", code.code, f"U-{name}")
    await wiring.duty.save_preferences("anna", Preferences(time_zone="Asia/Kathmandu"), "anna")


async def test_page_says_who_is_asked_and_what_happens_at_the_end(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_team(anna.wiring)
        page = await anna.read("/who?rule=refunds&at=2036-11-23T04:45")
        for words in (
            "First, at 2036-11-23 04:45",
            "<strong>anna</strong> for the group payments over chat, at 2036-11-24 14:45",
            "Held: outside the working hours.",
            "Escalation step 1, at 2036-11-23 04:45",
            "<strong>ben</strong> over chat, at 2036-11-23 04:45",
            "At the deadline, 2036-11-26 16:05",
            "It is denied.",
        ):
            assert words in page
        assert "canary" not in page
        assert "reads</option>" not in page
        assert "<strong>anna</strong>" in await anna.read("/who"), "now, under the first rule"


async def test_page_explains_an_unknown_rule_and_a_malformed_time(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "There is no rule" in await anna.read("/who?rule=none", 404)
        page = await anna.read("/who?rule=refunds&at=tomorrow", 422)
        assert "Enter a time such as" in page
        assert "Nobody is present who may decide." in await anna.read("/who?rule=refunds")


async def test_page_without_rules_and_its_links(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert 'href="/who"' in await anna.read("/channels")
        settings.policy.write_text("version: 1\ndefault: deny\nrules: []\n")
        anna.wiring.rulebook.refresh()
        assert "No rule asks" in await anna.read("/who")


async def test_page_needs_a_sign_in(settings: Settings) -> None:
    async with visit(settings, None) as stranger:
        response = await stranger.client.get("/who?rule=refunds")
        assert response.headers["location"].startswith("/sign-in?next=/who")


def test_page_works_on_a_phone_without_scripts(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/", viewport=PHONE)
    site.act(make_team)
    page.get_by_role("link", name="Me", exact=True).click()
    page.get_by_role("link", name="Who is asked").click()
    check_page(page, "who")
    plain = open_as("/who", name="carla", viewport=PHONE, java_script_enabled=False)
    plain.get_by_role("textbox", name="Time").fill("2036-11-23T20:00")
    plain.get_by_role("button", name="Show").click()
    expect(plain.get_by_role("heading", name="Escalation step 1, at 2036-11-23 20:00")).to_be_visible()
    expect(plain.get_by_role("textbox", name="Time")).to_have_value("2036-11-23T20:00")
