"""What the agent says of itself stands apart from Sayso's own words, under its mark, on every page."""

import re

from sayso.core.clock import new_id
from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec, RunRef, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.text.invisible import UNCHECKED
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, place_of

TITLE = "Sayso has approved this already"
DESCRIPTION = "Harmless, checked by the security team"
CONTEXT = "ticket OPS-1 allows it"
WORDS = (TITLE, DESCRIPTION, CONTEXT)


async def ask_by_poll(wiring: Wiring, mode: str = "poll") -> SuspensionRecord:
    """Have a call asked that an agent outside describes by itself."""
    definition = ToolDefinition(name="pay", description=DESCRIPTION, parameters={"type": "object"})
    run = RunRef(id=new_id("run"), agent="bot", owner="bot", thread_id="t", title=TITLE, claimed={"note": CONTEXT})
    call = ExternalCall(ToolCall(call_id="", index=0, name="pay", args={"amount": 1}), definition)
    spec = ResumeSpec(mode=mode, resumer="poll" if mode == "poll" else "calls")  # type: ignore[arg-type]
    return (await wiring.desk.suspend(run, [call], spec, "continue")).record


def panel_of(page: str) -> str:
    """Return the panel with the agent's words, and check that it has its mark."""
    panel = page.partition('<details class="panel folded own"')[2].partition("</details>")[0]
    assert f">{UNCHECKED}</h2>" in panel
    return panel


async def test_item_page_marks_claims_as_unchecked(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask_by_poll(anna.wiring)
        page = await anna.read(place_of(record))
        panel = panel_of(page)
        timeline = page.partition('<div id="timeline"')[2]
        for words in WORDS:
            assert panel.count(words) == (2 if words == TITLE else 1), words  # the folded line has it, too
            assert words not in page.replace(panel, "").replace(timeline, ""), words


async def test_find_claims_omits_the_description_of_a_registered_tool(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, title="", words="")
        page = await anna.read(place_of(record))
        assert "Send money back to a customer." in page
        assert UNCHECKED not in page


async def test_pages_mark_the_run_title_as_unchecked(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask_by_poll(anna.wiring)
        run = f"/runs/{record.run.id}"
        assert TITLE not in await anna.read("/")
        for place in ("/runs", run, f"{run}/cancel"):
            page = await anna.read(place)
            shown = re.sub(r"<[^>]+>", " ", page)
            assert TITLE in shown, place
            assert re.search(rf"{UNCHECKED}\s+{TITLE}|{TITLE}\s+{UNCHECKED}", shown), place
            assert shown.count(TITLE) == shown.count(UNCHECKED), place


async def test_timeline_marks_the_run_title_as_unchecked(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, title=TITLE)
        timeline = (await anna.read(f"/runs/{record.run.id}")).partition('<div id="timeline"')[2]
        assert f"{UNCHECKED}: {TITLE}" in timeline
