"""The page History filters and exports decided items."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from html import unescape

import pytest
from playwright.sync_api import Page, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest, Shown
from sayso.core.text.redaction import MASK
from service.core.settings import Settings
from service.core.settings.limits import MOST
from service.core.wiring import Wiring
from service.features.history import pages
from service.features.history.searching import Bounds, Filter, search, write_csv, write_json
from tests.hostile import CORPUS, HIDDEN
from tests.service.edge.web.sites import Site, Visit, visit
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, decide, finish, make_ask
from tests.service.edge.web.test_secrets import CANARY
from tests.service.edge.web.test_secrets import ask as ask_secretly


def count(page: str) -> int:
    return len(re.findall(r'<td class="when">', page))


async def test_decided_page_without_decisions(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "No decisions yet." in await anna.read("/history")


async def test_decided_page_filters_by_outcome_agent_and_text(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring)
        await decide(anna.wiring, await asked(anna.wiring, agent="shop"), "approve", args={**REFUND_ARGS, "amount": 7})
        await decide(anna.wiring, await asked(anna.wiring), "deny", message="Too old")
        await decide(anna.wiring, await asked(anna.wiring, ask_value(), agent="travel"), "value", value="HH-1234")
        await asked(anna.wiring, make_ask(terms={"timeout_s": 0}))
        page = await anna.read("/history")
        assert count(page) == 4
        for words in ("approved, edited", "denied", "Too old", "answered", "the deadline", ">ben<"):
            assert words in page, words
        for query, found in (
            ("verdict=denied", 2),
            ("verdict=approved", 1),
            ("verdict=nonsense", 4),
            ("agent=TRAV", 1),
            ("q=too+old", 1),
            ("q=chicago", 1),
            ("q=CUP-7", 3),
            ("q=%2525", 0),
            ("verdict=denied&agent=support&q=cup", 2),
            ("by=BEN", 3),
            ("by=deadline", 1),
            ("tool=refund", 3),
            ("tool=hotel", 1),
            ("fallback=on", 1),
            ("edited=on", 1),
            ("edited=on&fallback=on", 0),
            ("by=ben&tool=book&verdict=answered", 1),
            ("q=tool:refund", 3),
            ("q=amount>200", 3),
            ("q=amount>1000", 0),
            ("after=sus_nobody", 4),
        ):
            assert count(await anna.read(f"/history?{query}")) == found, query
        assert "Nothing matches." in await anna.read("/history?q=zebra")
        assert "“is:odd” is not a filter." in await anna.read("/history?q=is:odd")


async def test_decided_page_escapes_the_filter(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/history?agent=%22%3E%3Cb%3E&verdict=denied&fallback=on")
        assert 'value="&#34;&gt;&lt;b&gt;"' in page
        assert '<option value="denied" selected>' in page
        assert 'name="fallback" value="on" checked>' in page
        assert 'name="edited" value="on">' in page


async def test_decided_page_pages_without_gaps(settings: Settings) -> None:
    async with visit(settings) as anna:
        for place in range(30):
            await decide(anna.wiring, await asked(anna.wiring), "deny", message=f"reason {place}.")
        first = await anna.read("/history")
        following = re.search(r'rel="next" href="\?[^"]*after=(sus_\w+)"', first)
        assert following is not None
        second = await anna.read(f"/history?after={following[1]}")
        seen = re.findall(r"reason (\d+)\.", first) + re.findall(r"reason (\d+)\.", second)
        assert [int(place) for place in seen] == list(range(29, -1, -1))


async def test_search_that_goes_further_keeps_what_it_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_SEARCHED", 3)
    async with visit(settings) as anna:
        for place in range(9):
            note = "crushed" if place in (0, 8) else "late"
            await decide(anna.wiring, await asked(anna.wiring), "deny", message=f"{note} {place}.")
        page, seen = await anna.read("/history?q=crushed&verdict=denied"), []
        while further := re.search(r'href="(/history[^"]*kept=[^"]*)">Search further', page):
            seen.append((count(page), re.search(r"(\d+) decisions were searched", page)))
            page = await anna.read(unescape(further[1]))
        assert [(rows, said and said[1]) for rows, said in seen] == [(1, "3"), (1, "6")]
        assert count(page) == 2
        assert re.findall(r"crushed (\d)\.", page) == ["8", "0"]
        nothing = await anna.read("/history?q=zebra")
        assert "3 decisions were searched." in nothing
        assert "Search further" in nothing


async def test_next_page_stays_where_it_was_after_new_decisions(settings: Settings) -> None:
    async with visit(settings) as anna:
        ids = [(await decide(anna.wiring, await asked(anna.wiring), "deny")).id for _ in range(27)]
        assert f'href="?after={ids[2]}"' in await anna.read("/history")
        for _ in range(3):
            await decide(anna.wiring, await asked(anna.wiring), "deny")
        page = await anna.read(f"/history?after={ids[2]}")
        assert re.findall(r'href="/items/(sus_\w+)/', page) == [ids[1], ids[0]]
        assert 'rel="prev" href="/history?"' in page


async def test_row_has_the_look_and_the_worst_state(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        shown = Shown(display_hash="1:x", values=1, values_shown=1, look_ms=8_300)
        yes = DecisionRequest(action="approve", digest=record.items[0].digest)
        await anna.wiring.desk.decide(record.id, "i1", yes, Actor(id="ben", kind=ActorKind.HUMAN), shown=shown)
        await finish(anna.wiring, record, error="the provider answered 502")
        page = await anna.read("/history")
        assert 'class="look">8.3 s</td>' in page
        assert "<td>approved</td>" in page
        assert '<span class="state failed">failed</span>' in page
        assert (await export_csv(anna))[0]["look_ms"] == "8300"


async def test_search_for_an_id_leads_to_its_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await decide(anna.wiring, await asked(anna.wiring), "deny")
        for given, place in ((record.id, f"/items/{record.id}/i1"), (record.run.id, f"/runs/{record.run.id}")):
            response = await anna.client.get("/history", params={"q": f" {given} "})
            assert (response.status_code, response.headers["location"]) == (303, place)
        assert count(await anna.read(f"/history?q={record.id[4:]}")) == 1
        assert "Nothing matches." in await anna.read("/history?q=run_nobody")


async def test_pages_carry_the_filter(settings: Settings) -> None:
    async with visit(settings) as anna:
        ids = [(await decide(anna.wiring, await asked(anna.wiring, agent="a & b"), "deny")).id for _ in range(26)]
        page = await anna.read("/history?agent=a+%26+b&by=ben")
        assert f'href="?by=ben&amp;agent=a+%26+b&amp;after={ids[1]}"' in page
        assert 'href="/history/export?by=ben&amp;agent=a+%26+b&amp;format=csv"' in page
        assert count(await anna.read(f"/history?by=ben&agent=a+%26+b&after={ids[1]}")) == 1


async def export_csv(anna: Visit, query: str = "") -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(await anna.read(f"/history/export?{query}format=csv"), newline=""))]


async def test_export_has_what_is_filtered(settings: Settings) -> None:
    async with visit(settings) as anna:
        edited: JsonObject = {**REFUND_ARGS, "amount": 7}
        await decide(anna.wiring, await asked(anna.wiring, title="Mine"), "approve", args=edited, message="Less")
        denied = await decide(anna.wiring, await asked(anna.wiring), "deny")
        response = await anna.client.get("/history/export?edited=on&format=json")
        assert response.headers["content-disposition"] == 'attachment; filename="sayso-history.json"'
        found = response.json()
        assert (found["cut"], found["notes"], len(found["items"])) == (False, [], 1)
        (item,) = found["items"]
        assert item["args"] == edited
        assert item["requested_args"] == REFUND_ARGS
        assert (item["verdict"], item["decided_by"], item["edited"]) == ("approved", "ben", True)
        assert (item["claimed_title"], item["message"], item["fallback"]) == ("Mine", "Less", False)
        rows = await export_csv(anna)
        assert [row["verdict"] for row in rows] == ["denied", "approved"]
        assert rows[0]["suspension_id"] == denied.id
        assert json.loads(rows[1]["args"]) == edited
        assert await export_csv(anna, "q=zebra&") == []
        assert (await anna.client.get("/history/export?format=xml")).status_code == 422


async def test_export_masks_secrets(settings: Settings) -> None:
    async with visit(settings) as anna:
        await decide(
            anna.wiring, await ask_secretly(anna.wiring, title=f"Run with {CANARY}"), "deny", message=f"no {CANARY}"
        )
        for format_ in ("csv", "json"):
            text = await anna.read(f"/history/export?format={format_}")
            assert CANARY not in text
            assert MASK in text


async def test_export_has_no_formula_and_no_hidden_character(settings: Settings) -> None:
    async with visit(settings.model_copy(update={"backlog_s": MOST})) as anna:  # no worker takes these runs
        for number, text in enumerate(CORPUS.values()):
            ask = make_ask(args={"x": text}, reason=text[:2000])
            record = await asked(anna.wiring, ask, title=text, owner=f"demo {number // 100}")
            await decide(anna.wiring, record, "deny", message=text[:2000])
        rows = await export_csv(anna)
        assert len(rows) == len(CORPUS)
        cells = [cell for row in rows for cell in row.values() if cell]
        assert [cell for cell in cells if re.match(r"\s*[=+\-@|;]", cell) or cell[0] in "\t\r\n"] == []
        named = {chr(int(name.split("U+")[1], 16)) for name in HIDDEN if "U+" in name} - set("\u200d\ufe0f")
        assert named.isdisjoint("".join(cells))
        exact = json.loads(await anna.read("/history/export?format=json"))
        assert [item["reason"] for item in exact["items"]][::-1] == [text[:2000] for text in CORPUS.values()]


FORMULAS = ["x;=1+1;", "x\t=1+1", "x\n=1+1", "x\r\n@SUM(1)", 'x;"=1+1', "x; \t+1", "x;\uff1d1+1", "x;\n-1", "=1+1"]


async def test_export_has_no_formula_for_any_list_separator(settings: Settings) -> None:
    async with visit(settings) as anna:
        for number, text in enumerate(FORMULAS):
            record = await asked(anna.wiring, make_ask(args={"x": text}, reason=text), title=text, owner=f"a{number}")
            await decide(anna.wiring, record, "deny", message=text)
        exported = await anna.read("/history/export?format=csv")
    for separator in ",;\t":
        cells = [cell for row in csv.reader(io.StringIO(exported), delimiter=separator) for cell in row]
        lines = [line for cell in cells for line in re.split(r"[\r\n]+", cell)]
        assert [one for one in lines if re.match(r"[\s\"]*[=+@\uff1d-]", one)] == [], separator


async def test_value_of_many_line_breaks_is_exported(settings: Settings) -> None:
    """Its cell is searched for formulas once, not once for each line."""
    value = "x" + "\n" * 200_000 + "=1+1"
    async with visit(settings) as anna:
        await decide(anna.wiring, await asked(anna.wiring, ask_value()), "value", value=value)
        exported = await anna.read("/history/export?format=csv")
        assert f"x{value[1:-4]}'=1+1" in exported


@pytest.mark.parametrize("bounds", [Bounds(items=2), Bounds(suspensions=2)])
async def test_cut_export_says_so(settings: Settings, bounds: Bounds) -> None:
    async with visit(settings) as anna:
        for count in (2, 3):
            while len([one async for one in search(anna.wiring, Filter(), 0, 10)]) < count:
                await decide(anna.wiring, await asked(anna.wiring), "deny")
            found = json.loads("".join([part async for part in write_json(anna.wiring, Filter(), bounds)]))
            assert (len(found["items"]), found["cut"], len(found["notes"])) == (2, count == 3, count == 3)
            lines = [line async for line in write_csv(anna.wiring, Filter(), bounds)]
            assert lines[-1].startswith('"Cut: ') == (count == 3)


async def test_cells_of_an_export_are_written_in_a_thread(settings: Settings) -> None:
    """Signs of a long text take hundreds of milliseconds."""
    async with visit(settings) as anna:
        await fill(anna.wiring)
        in_loop: set[str] = set()
        sys.setprofile(lambda frame, _event, _arg: in_loop.add(frame.f_code.co_name))
        try:
            lines = [line async for line in write_csv(anna.wiring, Filter())]
        finally:
            sys.setprofile(None)
        assert len(lines) > 2
        assert "write_csv" in in_loop
        assert "_write_item" not in in_loop


async def fill(wiring: Wiring) -> None:
    await decide(wiring, await asked(wiring, title="One"), "deny")
    await decide(wiring, await asked(wiring), "approve", args={**REFUND_ARGS, "amount": 7})


def test_history_is_filtered_and_exported_in_the_browser(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(fill)
    page = open_as("/history", timezone_id="Asia/Tokyo", locale="en-GB")
    shown = page.locator("#history time").first
    at_ms = int(shown.get_attribute("data-moment") or "")
    minutes = at_ms // 60_000 + 9 * 60
    expect(shown).to_have_text(re.compile(f"{minutes // 60 % 24:02}:{minutes % 60:02} GMT\\+9$"))
    page.get_by_label("Edited").check()
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#history tbody tr")).to_have_count(1)
    expect(page.get_by_label("Edited")).to_be_checked()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "sayso-history.csv"
    assert len([*csv.DictReader(download.value.path().read_text().splitlines())]) == 1
