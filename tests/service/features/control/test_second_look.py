"""People take second looks on a page; the arguments of agents are shown as text."""

import re
from pathlib import Path

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec
from sayso.core.records.tools import ToolCall
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import REFUND, run_ref
from tests.service.edge.web.sites import settings_for, visit
from workers.outbox import Counting

POLICY = """
version: 1
default: deny
rules:
  - {id: small, tool: refund, action: allow, terms: {sample: {after: 1}}}
  - {id: others, tool: look, action: allow, terms: {reviewers: [eva, ben], sample: {after: 1}}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    found = settings_for(clean_store_url, tmp_path)
    assert found.policy is not None
    found.policy.write_text(POLICY)
    return found


async def call(wiring: Wiring, tool: str = "refund") -> None:
    one = ToolCall(call_id="c", index=0, name=tool, args={"order": "<b>A</b>\u202e", "amount": 5})
    definition = REFUND.model_copy(update={"name": tool})
    await wiring.desk.suspend(run_ref(), [ExternalCall(one, definition)], ResumeSpec(mode="poll"))
    await Counting(wiring).count_waiting()


def read_form(page: str) -> dict[str, str]:
    return {name: re.findall(rf'name="{name}" value="([^"]+)"', page)[0] for name in ("run", "seq")}


async def test_person_judges_a_call_on_the_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "No call waits for your second look." in await anna.read("/second-looks")
        await call(anna.wiring)
        page = await anna.read("/second-looks")
        assert "allowed by the rules" in page
        assert "&lt;b&gt;A&lt;/b&gt;" in page
        assert "\u202e" not in page
        form = read_form(page)
        assert "Choose one of the buttons on this page" in await anna.send("/second-looks", 422, **form)
        assert "needs a reason" in await anna.send("/second-looks", 422, **form, opinion="disagree")
        long = await anna.send("/second-looks", 422, **form, opinion="disagree", reason="x" * 2001)
        assert "Shorten it to 2000" in long
        await anna.send("/second-looks", 303, **form, opinion="disagree", reason="<i>Paid</i> before")
        assert "No call waits" in await anna.read("/second-looks")
        assert "disagreed" in (trail := await anna.read(f"/runs/{form['run']}"))
        assert "&lt;i&gt;Paid&lt;/i&gt; before" in trail
        await Counting(anna.wiring).count_waiting()
        assert "1 of 1" in await anna.read("/insights")


async def test_inbox_has_a_section_while_calls_wait(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert 'id="second-looks-h"' not in await anna.read("/")
        for _ in range(4):
            await call(anna.wiring)
        section = (await anna.read("/")).split('id="second-looks-h"')[1].split("</section>")[0]
        assert len(re.findall('<li class="item">', section)) == 3
        assert "1 more" in section
        assert "allowed by the rules" in section
        places = re.findall(r'href="/second-looks#([^"]+)"', section)
        page = await anna.read("/second-looks")
        assert all(f'id="{place}"' in page for place in places)
        assert 'id="second-looks-h"' not in await anna.read("/?q=refund")


async def test_inbox_has_no_section_for_calls_of_others(settings: Settings) -> None:
    async with visit(settings) as anna:
        await call(anna.wiring, "look")
        assert 'id="second-looks-h"' not in await anna.read("/")


async def test_call_of_other_reviewers_has_no_form(settings: Settings) -> None:
    async with visit(settings) as anna:
        await call(anna.wiring, "look")
        page = await anna.read("/second-looks")
        assert "Waiting for somebody else" in page
        assert 'name="opinion"' not in page


@pytest.mark.parametrize("form", [{"opinion": "odd", "seq": "2"}, {"opinion": "agree", "seq": "x"}])
async def test_form_with_other_values_is_refused(settings: Settings, form: dict[str, str]) -> None:
    async with visit(settings) as anna:
        assert "Choose one of the buttons" in await anna.send("/second-looks", 422, run="run_1", **form)
