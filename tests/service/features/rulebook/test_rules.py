"""The list of rules and the page of one rule, without scripts."""

from pathlib import Path

import pytest

from sayso.core.calendar import Hours, WorkingHours
from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec
from sayso.core.records.tools import ToolCall
from sayso.wire.people import Preferences
from service.core.settings import Settings
from tests.builders import REFUND, run_ref
from tests.service.edge.web.sites import add_people, settings_for, visit
from tests.service.edge.web.stories import asked, decide, make_ask

RULES = """\
version: 1
default: request_approval
terms: {timeout_s: 600}
rules:
  # Reads are harmless.
  - {id: reads, tool: "read_*", action: allow}
  - id: refunds-over-100
    priority: 200
    tool: refund_payment
    when: args.amount > 100
    action: request_approval
    reason: Refunds over 100 need a person
    terms:
      reviewers: [anna, ben]
      timeout_s: 7200
  - id: nightly
    tool: sync
    action: request_approval
    terms:
      unattended_approval: true
      fallback: {action: approve}
  - {id: old, tool: legacy, action: deny, enabled: false}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with rules of every kind."""
    return settings_for(clean_store_url, tmp_path, RULES)


async def test_list_shows_rules_in_the_order_of_trial(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/rules")
        places = [page.index(f'href="/rules/{name}"') for name in ("refunds-over-100", "nightly", "old", "reads")]
        assert places == sorted(places)
        for words in (
            "Calls of refund_payment with amount over 100",
            "anna or ben",
            "2 h",
            "runs by itself",
            "disabled",
            "Calls that no rule matches wait 10 min for any reviewer; then they are denied.",
        ):
            assert words in page
        assert page.count("never hit") == 5
        assert 'href="/rules/-/draft"' not in page


async def test_rule_page_shows_the_week_of_its_reviewers(settings: Settings) -> None:
    async with visit(settings) as anna:
        await add_people(anna.wiring, "ben")
        assert "At any hour: anna, ben" in await anna.read("/rules/refunds-over-100")
        hours = Hours(start="09:00", end="17:00")
        for name in ("anna", "ben"):
            working = WorkingHours(time_zone="Europe/Berlin", hours=hours)
            office = Preferences(time_zone="Europe/Berlin", working_hours=working)
            await anna.wiring.duty.save_preferences(name, office, name)
        page = await anna.read("/rules/refunds-over-100")
        assert "Times in Europe/Berlin" in page
        assert page.count('<td colspan="18" title="00:00–09:00 nobody at once" class="nobody">') >= 6
        assert "nobody at once" in page
        assert "anna, ben</span></td>" in page
        assert "coming week" not in await anna.read("/rules/reads")


async def test_rule_page_shows_words_source_people_and_items(settings: Settings) -> None:
    async with visit(settings) as anna:
        await add_people(anna.wiring, "ben")
        record = await asked(anna.wiring, make_ask(terms={"secrets": ["order_id"]}))
        await decide(anna.wiring, record, "deny")
        assert await anna.wiring.rules.list_asked("refunds-over-100") == [(record.id, "i1")]
        page = await anna.read("/rules/refunds-over-100")
        for words in (
            "wait 2 h for anna or ben; then they are denied.",
            "Tried as number 1 of 4, priority 200.",
            "It decided 1 call in 7 days.",
            "policy.yaml, from line 7",
            "when: args.amount &gt; 100",
            "<strong>anna</strong>",
            "At the deadline",
            f'href="/items/{record.id}/i1"',
            "[secret]",
            "denied",
        ):
            assert words in page
        assert "A-1932" not in page
        assert "nightly" not in page
        assert 'data-label="Hits in 7 days" class="number">1</td>' in await anna.read("/rules")
        page = await anna.read(f"/items/{record.id}/i1")
        assert 'href="/rules/refunds-over-100"' in page
        assert "1 other rule matched" in page
        assert 'href="/rules/everything-else"' in page
        assert f'href="/rules/-/try?item={record.id}/i1"' in page


async def test_rule_page_says_that_a_call_may_run_by_itself(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/rules/nightly")
        assert "then they run by themselves." in page
        assert "The call runs by itself at the deadline, unless someone denies it." in page
        page = await anna.read("/rules/reads")
        assert "run without asking anyone" in page
        assert "This rule asks nobody." in page
        assert "Reads are harmless" not in page


async def test_rule_page_shows_what_a_shadow_rule_would_have_done(settings: Settings) -> None:
    shadow = "  - {id: strict, tool: refund, action: deny, mode: shadow, owner: Dora, review_by: 2027-01-15}\n"
    hard = "  - {id: never, tool: drop, action: deny, absolute: true}\n"
    settings.policy.write_text(RULES + shadow + hard)
    async with visit(settings) as anna:
        assert "It would have decided no call." in await anna.read("/rules/strict")
        call = ExternalCall(ToolCall(call_id="c0", index=0, name="refund", args={"order": "A", "amount": 5}), REFUND)
        await anna.wiring.desk.suspend(run_ref(), (call,), ResumeSpec(mode="poll"))
        page = await anna.read("/rules/strict")
        for words in (
            "Shadow, in 7 days: It would have denied 1. It decides nothing.",
            "It is a shadow rule: so far it decides nothing.",
            "It was never hit in 7 days.",
            "Dora",
            "2027-01-15",
        ):
            assert words in page
        assert "nobody can lift this" in await anna.read("/rules/never")
        listed = await anna.read("/rules")
        assert (listed.count("nobody can lift this"), listed.count(">shadow<")) == (1, 1)


async def test_page_of_a_removed_rule_keeps_its_items(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(rule_id="gone"))
        page = await anna.read("/rules/gone", 404)
        assert "No rule in force has this name." in page
        assert f'href="/items/{record.id}/i1"' in page


async def test_rule_page_without_its_file_shows_the_rule_itself(settings: Settings) -> None:
    async with visit(settings) as anna:
        settings.policy.unlink()
        page = await anna.read("/rules/refunds-over-100")
        assert "only its content is known" in page
        assert "args.amount &gt; 100" in page


async def test_pages_need_a_sign_in(settings: Settings) -> None:
    async with visit(settings, None) as stranger:
        for place in ("/rules", "/rules/reads", "/rules/-/try", "/rules/-/draft"):
            assert (await stranger.client.get(place)).headers["location"].startswith("/sign-in?next=/rules")
