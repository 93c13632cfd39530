"""Events of other software appear on a run's pages, marked and escaped; an item's page has the earlier ones."""

from typing import Any

import pytest

from sayso.timeline.external_events import Kind
from sayso.timeline.merging import build_entries
from service.core.settings import Settings
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.wiring import Wiring
from service.edge.web.content.runs import MAX_EXTERNAL_EVENTS, describe_entry, read_external_events
from tests.sayso.timeline.recorded import read_recorded
from tests.sayso.timeline.stories import STORIES
from tests.sayso.timeline.test_merging import build_sample_entries, kept
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, decide

EVIL = "<script>alert(1)</script>\u202e"


async def tell(wiring: Wiring, run_id: str, *events: dict[str, Any], first: int = 1) -> None:
    numbered = [ExternalEvent(seq, None, event) for seq, event in enumerate(events, start=first)]
    await wiring.part(ExternalEvents).add(run_id, "agent", "sayso", numbered)


def note(text: str) -> dict[str, Any]:
    return {"type": "message", "who": "payer", "data": {"text": text}}


@pytest.mark.parametrize("source_format", list(STORIES))
def test_describe_entry_of_every_source(source_format: str) -> None:
    lines = [describe_entry(one) for one in build_sample_entries(source_format)]
    assert all(line.text and line.source for line in lines)
    assert [line.tone for line in lines if line.kind == Kind.CALL] == ["bad" if source_format == "sayso" else "good"]


def test_describe_entry_shows_the_tags_of_what_was_said() -> None:
    lines = [describe_entry(entry) for entry in build_entries(kept("trpc_agent_go", read_recorded("payments")))]
    assert [line.note for line in lines if line.kind == Kind.TEXT][1] == "Money leaves.\nTags: audit"


async def test_item_page_shows_only_external_events_before_its_suspension(settings: Settings) -> None:
    async with visit(settings) as site:
        record = await asked(site.wiring)
        early = [ExternalEvent(1, record.created_at_ms - 5, note("before the pause"))]
        await site.wiring.part(ExternalEvents).add(record.run.id, "early", "sayso", early)
        await decide(site.wiring, record, "approve")
        await tell(site.wiring, record.run.id, note("after the pause"))
        late = [ExternalEvent(1, record.created_at_ms + 1, note("late words"))]
        await site.wiring.part(ExternalEvents).add(record.run.id, "late", "sayso", late)
        run = await site.read(f"/runs/{record.run.id}")
        item = await site.read(f"/items/{record.id}/i1")
    assert "before the pause" in run
    assert "after the pause" in run
    assert "Nobody has checked" in run
    assert "before the pause" in item
    assert "late words" not in item
    assert "the agent, early" in item


async def test_external_events_are_escaped(settings: Settings) -> None:
    async with visit(settings) as site:
        record = await asked(site.wiring)
        call = {"type": "tool_call", "data": {"name": EVIL}}
        await tell(site.wiring, record.run.id, note(EVIL), {"type": EVIL}, call)
        page = await site.read(f"/runs/{record.run.id}")
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 3


async def test_page_shows_the_latest_external_events(settings: Settings) -> None:
    async with visit(settings) as site:
        record = await asked(site.wiring)
        for first in range(1, MAX_EXTERNAL_EVENTS + 2, 200):
            await tell(site.wiring, record.run.id, *(note(f"w{first + n}") for n in range(200)), first=first)
        shown = await read_external_events(site.wiring.part(ExternalEvents), record.run.id)
        page = await site.read(f"/runs/{record.run.id}")
    assert (len(shown.entries), shown.cut) == (MAX_EXTERNAL_EVENTS, True)
    assert shown.entries[-1].text == "w1200"
    assert "Earlier external events are not shown" in page
