"""Alike items over plain HTTP: one row in the inbox, one table, one decision for each ticked row."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from sayso.core.records.items import Item, ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.service.edge.web.sites import Visit, visit
from tests.service.edge.web.stories import ask_value, asked, decide, make_ask


def refund(number: int, amount: JsonValue, **fields: Any) -> ItemDraft:
    args: dict[str, JsonValue] = {"order_id": f"A-{number}", "amount": amount, "currency": "EUR"}
    return make_ask(args={**args, "customer": f"Customer {number}"}, **fields)


async def ask_refunds(wiring: Wiring, amounts: Sequence[JsonValue], **fields: Any) -> list[SuspensionRecord]:
    return [await asked(wiring, refund(place, amount, **fields)) for place, amount in enumerate(amounts)]


def row_id(record: SuspensionRecord, item_id: str = "i1") -> str:
    return f"{record.id}-{item_id}"


def picks_of(page: str, *, ticked: bool = True) -> dict[str, str]:
    """Return the boxes of a page that a browser without scripts would send."""
    found = re.findall(r'name="(pick\.[^"]+)" value="([^"]+)"( checked)?', page)
    return {name: value for name, value, checked in found if checked or not ticked}


async def send(anna: Visit, records: Sequence[SuspensionRecord], picks: dict[str, str], **fields: str) -> str:
    return await anna.send("/batch", 200, items=" ".join(map(row_id, records)), **picks, **fields)


async def item_of(anna: Visit, record: SuspensionRecord) -> Item:
    return (await anna.wiring.desk.suspensions.read(record.id)).record.items[0]


async def test_three_alike_items_are_one_row_in_the_inbox(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [101, 1576.15])
        assert (await anna.read("/")).count('<li class="item') == 2
        records.append(await asked(anna.wiring, refund(9, 4890)))
        page = await anna.read("/")
        assert page.count('<li class="item') == 1
        assert f'href="/batch/{row_id(records[0])}"' in page
        assert '<span class="times">3 ×</span> Refund payment' in page
        assert '<span class="total">EUR 6,567.15</span>' in page
        assert '<span class="range">EUR 101.00 to EUR 4,890.00</span>' in page


async def test_rows_of_alike_items_are_one_row_however_few(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [101, 102])
        ids = ",".join(record.id for record in records)
        rows = await anna.read(f"/rows?ids={ids}")
        alike = re.findall(r'data-alike="(\w+)"', rows)
        assert len(alike) == 2
        assert len(set(alike)) == 1
        assert f'<li class="item several" id="alike-{alike[0]}"' in await anna.read(f"/rows?ids={ids}&alike={alike[0]}")


async def test_ten_alike_are_approved_each_with_its_own_digest(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [*range(100, 110)])
        page = await anna.read(f"/batch/{row_id(records[0])}")
        assert "The same in all 10:" in page
        picks = picks_of(page)
        assert len(picks) == 10
        shown = {"unseen": "", "look_ms": "2100"}
        done = await send(anna, records, picks, **shown)
        assert "<h2>10 approved</h2>" in done
        assert "Nothing is left here." in done
        assert "<h2>10 approved</h2>" in await send(anna, records, picks, **shown)  # a form sent twice counts once
        for record in records:
            item = await item_of(anna, record)
            (decision,) = item.decisions
            assert (decision.args_digest, decision.idempotency_key) == (item.digest, f"web-i1-{item.digest}")
            assert decision.shown is not None
            assert (decision.shown.values, decision.shown.values_shown, decision.shown.look_ms) == (4, 4, 2100)
            assert decision.shown.paths == ("order_id", "amount", "currency", "customer")
        assert "All done." in await anna.read("/")


async def test_items_of_one_suspension_are_decided_together(settings: Settings) -> None:
    async with visit(settings) as anna:
        drafts = [refund(place, 100 + place).model_copy(update={"index": place}) for place in range(4)]
        record = await asked(anna.wiring, *drafts)
        picks = picks_of(await anna.read(f"/batch/{row_id(record)}"))
        assert "<h2>4 approved</h2>" in await send(anna, [record], picks)


async def test_page_without_scripts_measures_nothing_as_shown(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [1, 2, 3])
        picks = picks_of(await anna.read(f"/batch/{row_id(records[0])}"))
        await send(anna, records, picks)
        assert (await item_of(anna, records[0])).decisions[0].shown is None


async def test_row_that_was_not_on_the_screen_is_recorded_so(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [1, 2, 3])
        picks = picks_of(await anna.read(f"/batch/{row_id(records[0])}"))
        await send(anna, records, picks, unseen=row_id(records[2]), look_ms="5")
        shown = [(await item_of(anna, record)).decisions[0].shown for record in records]
        assert [one and one.values_shown for one in shown] == [4, 4, 1]


async def test_batch_is_answered_row_by_row(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [100, 101, 102, 103, 104])
        picks = picks_of(await anna.read(f"/batch/{row_id(records[0])}"))
        await decide(anna.wiring, records[1], "approve")
        await decide(anna.wiring, records[2], "deny")
        name = f"pick.{row_id(records[3])}"
        picks[name] = f"{'0' * 64} {picks[name].partition(' ')[2]}"
        late = {name: value for name, value in picks.items() if row_id(records[1]) in name}
        done = await send(anna, records, picks)
        assert "<h2>2 approved, 2 decided by ben, 1 changed: look again</h2>" in done
        assert "The request has changed. Check it again before you decide." in done
        assert picks_of(done, ticked=False).keys() == {name}
        assert picks_of(done) == {}, "what was refused starts without a tick"
        assert "<h2>1 decided by ben</h2>" in await send(anna, records, late)


async def test_batch_is_denied_with_one_reason(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [100, 101, 102])
        picks = picks_of(await anna.read(f"/batch/{row_id(records[0])}"))
        assert "<h2>3 denied</h2>" in await send(anna, records, picks, deny="1", reason="Not\r\nnow")
        for record in records:
            assert (await item_of(anna, record)).decisions[0].message == "Not\nnow"


async def test_batch_under_a_quorum_waits_for_another_reviewer(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [1, 2, 3], terms={"quorum": {"approve": 2}})
        picks = picks_of(await anna.read(f"/batch/{row_id(records[0])}"))
        assert "<h2>3 waiting for another reviewer</h2>" in await send(anna, records, picks)
        assert (await item_of(anna, records[0])).open


async def test_form_without_a_tick_changes_nothing(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [1, 2, 3])
        place = {"items": " ".join(map(row_id, records))}
        assert "Tick at least one row." in await anna.send("/batch", 422, reason="", **place)
        kept = await anna.send("/batch", 422, deny="1", reason="Too much", **place)
        assert "Too much</textarea>" in kept
        assert (await item_of(anna, records[0])).open


async def test_form_of_an_earlier_session_keeps_its_ticks(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [1, 2, 3])
        first = dict([*picks_of(await anna.read(f"/batch/{row_id(records[0])}")).items()][:1])
        kept = await anna.send("/batch", 403, csrf="d" * 64, items=row_id(records[0]), **first)
        assert "You have signed in again." in kept
        assert picks_of(kept) == first
        assert (await item_of(anna, records[0])).open


async def test_items_that_need_a_page_of_their_own_are_never_approved_here(settings: Settings) -> None:
    async with visit(settings) as anna:
        odd = await asked(anna.wiring, make_ask(args={"path": "a\u202eb"}))
        value = await asked(anna.wiring, ask_value())
        plain = await asked(anna.wiring)
        page = await anna.read(f"/batch?item={row_id(odd)}&item={row_id(value)}&item={row_id(plain)}&item=sus_none-i1")
        assert picks_of(page, ticked=False).keys() == {f"pick.{row_id(plain)}"}
        assert "Open these alone" in page
        for record in (odd, value):
            forged = {f"pick.{row_id(record)}": f"{record.items[0].digest} x"}
            done = await anna.send("/batch", 200, items=row_id(record), **forged)
            assert "<h2>1 not decided: open it alone</h2>" in done
            assert (await item_of(anna, record)).open


async def test_selected_items_of_several_kinds_have_a_table_each(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = [await asked(anna.wiring, refund(1, 5)), await asked(anna.wiring, make_ask(args={"order_id": "B"}))]
        page = await anna.read("/batch?" + "&".join(f"item={row_id(record)}" for record in records))
        assert page.count('<table class="alike-rows">') == 2
        picks = picks_of(page)
        done = await anna.send("/batch", 200, items=" ".join(map(row_id, records)), **picks)
        assert "<h2>2 approved</h2>" in done


async def test_page_of_decided_items_says_so(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await decide(anna.wiring, await asked(anna.wiring), "deny")
        for place in (f"/batch/{row_id(record)}", "/batch?item=nothing", "/batch"):
            assert "These items are decided." in await anna.read(place)


async def test_unusual_amount_starts_without_a_tick(settings: Settings) -> None:
    async with visit(settings) as anna:
        for record in await ask_refunds(anna.wiring, [129] * 6):
            await decide(anna.wiring, record, "approve")
        records = await ask_refunds(anna.wiring, [120, 4902, 121])
        page = await anna.read(f"/batch/{row_id(records[0])}")
        assert picks_of(page).keys() == {f"pick.{row_id(records[0])}", f"pick.{row_id(records[2])}"}
        assert '<span class="flag">38x usual</span>' in page
        assert '<span class="sum amount">EUR 241.00</span>' in page
        assert '<span class="flag">38x usual</span>' in await anna.read("/")
        sentence = "38x usual: amount EUR 4,902 is above 95% of the last 6 approved calls of this agent"
        assert sentence in await anna.read(f"/items/{records[1].id}/i1")
