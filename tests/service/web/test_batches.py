"""Alike items: one row in the inbox, one table, one decision for each ticked row."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from sayso.records.decisions import Shown
from sayso.records.suspensions import SuspensionRecord
from service.settings import Settings
from service.wiring import Wiring
from tests.service.web.sites import CSRF, Visit, visit
from tests.service.web.stories import asked, decide, make_ask, place_of

CUSTOMERS = ("Mara Lindqvist", "D. Whitfield", "Ada Okafor")


def refund(number: int, amount: object, **fields: Any) -> Any:
    args = {"order_id": f"A-{number}", "customer": f"Customer {number}", "amount": amount, "currency": "EUR"}
    return make_ask(args=args, **fields)


async def ask_refunds(wiring: Wiring, amounts: Sequence[object], **fields: Any) -> list[SuspensionRecord]:
    return [await asked(wiring, refund(place, amount, **fields)) for place, amount in enumerate(amounts)]


def row_id(record: SuspensionRecord) -> str:
    return f"{record.id}-i1"


def picks_of(page: str, *, ticked: bool = True) -> dict[str, str]:
    """Return the boxes of a page that a browser without scripts would send."""
    found = re.findall(r'name="(pick\.[^"]+)" value="([^"]+)"( checked)?', page)
    return {name: value for name, value, checked in found if checked or not ticked}


async def send(anna: Visit, like: SuspensionRecord, picks: dict[str, str], act: str = "approve", **fields: str) -> str:
    return await anna.send("/batch", 200, like=row_id(like), items="", act=act, **picks, **fields)


async def test_three_alike_items_are_one_row_in_the_inbox(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, [101, 1576.15, 4890])
        page = await anna.read("/")
        assert page.count('<li class="item') == 1
        assert f'href="/batch?like={row_id(records[0])}"' in page
        assert '<span class="times">3 ×</span> Refund payment' in page
        assert '<span class="total">EUR 6,567.15</span>' in page
        assert '<span class="range">EUR 101.00 to EUR 4,890.00</span>' in page


async def test_ten_alike_are_approved_each_with_its_own_digest(settings: Settings) -> None:
    async with visit(settings) as anna:
        records = await ask_refunds(anna.wiring, range(100, 110))
        page = await anna.read(f"/batch?like={row_id(records[0])}")
        picks = picks_of(page)
        assert len(picks) == 10
        done = await send(anna, records[0], picks)
        assert "<h2>10 approved</h2>" in done
        assert "<h2>10 approved</h2>" in await send(anna, records[0], picks)  # a form sent twice counts once
        for record in records:
            (item,) = (await anna.wiring.desk.suspensions.read(record.id)).record.items
            (decision,) = item.decisions
            assert (decision.args_digest, decision.idempotency_key) == (item.digest, f"web-i1-{item.digest}")
            assert decision.shown is None


if False:
    print(CUSTOMERS, CSRF, Shown, decide, place_of, pytest)
