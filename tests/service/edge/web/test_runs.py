import re
from html import unescape

import pytest

from sayso.core.records.suspensions import RunEnd
from service.core.settings import Settings
from service.edge.web import runs
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, begin, decide, finish, make_ask, pause, place_of, take_up


def titles(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/runs/[^"]+">([^<]+)</a>', page)


async def test_runs_page_without_runs(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "No runs yet." in await anna.read("/runs")


async def test_runs_page_filters_by_status_and_agent(settings: Settings) -> None:
    async with visit(settings) as anna:
        await begin(anna.wiring, title="just begun")
        await asked(anna.wiring, title="waits", agent="travel")
        await finish(anna.wiring, await decide(anna.wiring, await asked(anna.wiring, title="done"), "approve"))
        assert sorted(titles(await anna.read("/runs"))) == ["done", "just begun", "waits"]
        assert titles(await anna.read("/runs?status=suspended")) == ["waits"]
        assert titles(await anna.read("/runs?status=completed")) == ["done"]
        assert titles(await anna.read("/runs?agent=TRAVEL")) == ["waits"]
        assert len(titles(await anna.read("/runs?status=nonsense"))) == 3
        assert "No run matches." in await anna.read("/runs?status=failed")


async def test_runs_page_is_paged(settings: Settings) -> None:
    async with visit(settings) as anna:
        for place in range(30):
            await begin(anna.wiring, title=f"run {place}")
        first, second = await anna.read("/runs"), await anna.read("/runs?skip=25")
        assert len(titles(first)) == 25
        assert 'rel="next"' in first
        assert sorted(titles(first) + titles(second)) == sorted(f"run {place}" for place in range(30))


async def test_search_of_runs_that_goes_further_keeps_what_it_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_SEARCHED", 3)
    async with visit(settings) as anna:
        for place in range(7):
            await begin(anna.wiring, title=f"run {place}", agent="travel" if place in (0, 6) else "support")
        page, seen = await anna.read("/runs?agent=travel"), []
        while further := re.search(r'href="(/runs[^"]*kept=[^"]*)">Search further', page):
            seen.append(titles(page))
            page = await anna.read(unescape(further[1]))
        assert (seen, titles(page)) == ([["run 6"], ["run 6"]], ["run 6", "run 0"])


async def test_run_page_shows_state_result_and_timeline(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, title="Broken cup")
        page = await anna.read(f"/runs/{record.run.id}")
        assert f'href="/items/{record.id}/i1"' in page
        assert "Cancel this run" in page
        await finish(anna.wiring, await decide(anna.wiring, record, "approve"), {"refund_id": "rf_1"})
        page = await anna.read(f"/runs/{record.run.id}")
        for words in (
            "All is done.",
            "ben approved refund_payment",
            "refund_payment ran",
            "The run completed",
            "rf_1",
        ):
            assert words in page, words
        assert "Cancel this run" not in page


async def test_run_page_links_the_items_of_every_suspension(settings: Settings) -> None:
    async with visit(settings) as anna:
        first = await decide(anna.wiring, await asked(anna.wiring), "approve")
        second = await pause(anna.wiring, first, [make_ask()])
        page = await anna.read(f"/runs/{first.run.id}")
        assert page.index(f"/items/{first.id}/i1") < page.index(f"/items/{second.id}/i1")


async def test_run_page_shows_rows_and_the_tree_of_calls(settings: Settings) -> None:
    async with visit(settings) as anna:
        first = await asked(anna.wiring, make_ask(subagent="scout"))
        first = await decide(anna.wiring, first, "deny", message="Too much")
        second = await pause(anna.wiring, first, [make_ask()], "x" * 250)
        page = await anna.read(f"/runs/{first.run.id}")
        assert f'id="{first.id}-i1"' in page  # a row as in the inbox
        assert f'id="{second.id}-i1" data-due=' in page
        assert "Too much" in page
        assert page.index("ben denied this") < page.index('aria-labelledby="calls-h"')
        tree = page[page.index('<ol class="turns">') : page.index("</ol>", page.index('<ol class="turns">'))]
        assert tree.index("Turn 1") < tree.index(place_of(first)) < tree.index("scout") < tree.index("denied")
        assert tree.index("Turn 2") < tree.index(f"{'x' * 199}…") < tree.index(place_of(second))


async def test_run_page_shows_one_voice_of_the_timeline(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await finish(anna.wiring, await decide(anna.wiring, await asked(anna.wiring), "approve"))
        place = f"/runs/{record.run.id}"
        sentences = {
            "sayso": "ben approved refund_payment",
            "rules": "refund_payment needs approval",
            "agent": "The model requested 1 call",
        }
        for voice in sentences:
            page = await anna.read(f"{place}?voice={voice}")
            assert [name for name, text in sentences.items() if text in page] == [voice]
            assert f'href="{place}?voice={voice}" aria-current="true"' in page
        page = await anna.read(f"{place}?voice=nobody")
        assert all(text in page for text in sentences.values())


async def test_run_page_lays_out_a_result_by_its_shape(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await decide(anna.wiring, await asked(anna.wiring), "approve")
        fence = await take_up(anna.wiring, record)
        end = RunEnd.model_validate({"status": "completed", "result": {"paid": {"amount": 250, "note": "a\nb"}}})
        await anna.wiring.desk.settle(record.id, fence, end, ())
        page = await anna.read(f"/runs/{record.run.id}")
        result = page[page.index('id="result-h"') :]
        assert '<span class="above">paid.</span><span class="under">amount</span></th><td class="literal">' in result


async def test_cancel_asks_first_and_records_the_reason(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        place = f"/runs/{record.run.id}"
        assert "Cancel this run?" in await anna.read(f"{place}/cancel")
        assert await anna.send(f"{place}/cancel", reason="Wrong customer") == place
        page = await anna.read(place)
        assert "anna cancelled the run" in page
        assert "Wrong customer" in page
        assert "All done." in await anna.read("/")


async def test_ended_run_cannot_be_cancelled(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await finish(anna.wiring, await decide(anna.wiring, await asked(anna.wiring), "approve"))
        place = f"/runs/{record.run.id}/cancel"
        assert (await anna.client.get(place)).status_code == 303
        page = await anna.send(place, 409, reason="Too late")
        assert "already ended" in page
        assert "Too late" in page


async def test_missing_run_shows_a_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "This run does not exist" in await anna.read("/runs/run_1", 404)
        assert "This run does not exist" in await anna.read("/runs/run_1/cancel", 404)
        assert "This run does not exist" in await anna.send("/runs/run_1/cancel", 404)
