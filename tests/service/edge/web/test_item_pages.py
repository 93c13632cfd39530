"""The page of an item, per reviewer."""

import pytest

from sayso.core.records.decisions import Actor, ActorKind
from service.core.settings import Settings
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import (
    BOOK_HOTEL,
    BOOK_HOTEL_ARGS,
    REFUND,
    REFUND_ARGS,
    ask_value,
    asked,
    decide,
    make_ask,
    place_of,
    take_up,
)
from tests.service.edge.web.test_items import answer


async def test_item_page_shows_call_reason_deadline_and_fallback(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, title="Broken cup", words="I checked it & it is broken.")
        page = await anna.read(place_of(record))
        for words in (
            "refund_payment",
            "Send money back to a customer.",
            "order_id",
            "A-1932",
            "lines[0].</span>",
            ">sku</span>",
            "Refunds over 100 need a person",
            "refunds-over-100",
            "1 other rule matched",
            "I checked it &amp; it is broken.",
            "Nobody has checked",
            'if nobody answers</span> <span class="unbroken">(<time class="left"',
            "Any reviewer, except demo, who requested it",
            "Waiting for a decision on refund_payment",
            "(1) refund_payment · Sayso",
        ):
            assert words in page, words
        for shown in ("Approve EUR 250.00</button>", "Edit</a>", "Deny and go on</button>"):
            assert shown in page
        assert "Send</button>" not in page


async def test_items_of_the_same_tool_are_distinguishable(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(), make_ask(args={"order_id": "B-77", "amount": 3}, index=1))
        for place in (place_of(record), f"/runs/{record.run.id}"):
            assert '<span class="text">B-77</span>' in await anna.read(place)


async def test_item_page_shows_a_deadlock(settings: Settings) -> None:
    async with visit(settings) as anna:
        terms = {"quorum": {"approve": 2, "deny": 2}, "reviewers": ["anna", "ben"]}
        record = await asked(anna.wiring, make_ask(terms=terms))
        record = await decide(anna.wiring, record, "deny")
        assert "Too few reviewers" not in await anna.read(place_of(record))
        await answer(anna, record, "approve")
        for place in (place_of(record), "/"):
            page = await anna.read(place)
            assert "Too few reviewers are left to reach the quorum. At the deadline it is denied." in page
            assert "other reviewers must still decide" not in page.lower()


async def test_item_page_of_an_ineligible_reviewer_has_no_forms(settings: Settings) -> None:
    async with visit(settings, "ben") as ben:
        record = await asked(ben.wiring, make_ask(terms={"reviewers": ["anna"]}))
        page = await ben.read(place_of(record))
        assert "Only anna can decide this." in page
        assert 'class="approval"' not in page
        assert "You cannot decide this" in await answer(ben, record, "approve", 403)
        own = await asked(ben.wiring, owner="ben")
        assert "another reviewer must decide it" in await ben.read(place_of(own))
        assert "ask another reviewer" in await answer(ben, own, "approve", 403)


async def test_item_page_shows_the_quorum(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"quorum": {"approve": 2}}))
        assert "0 of 2 have approved; 1 denial is enough" in await anna.read(place_of(record))
        await answer(anna, record, "approve")
        page = await anna.read(place_of(record))
        assert "1 of 2 have approved; 1 denial is enough" in page
        assert "You approved. Waiting for 1 more." in page
        await decide(anna.wiring, record, "approve", name="ben")
        assert "ben approved this" in await anna.read(place_of(record))


async def test_item_page_links_other_items(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(), make_ask(BOOK_HOTEL, BOOK_HOTEL_ARGS, index=1))
        page = await anna.read(place_of(record, "i1"))
        assert f'href="{place_of(record, "i2")}"' in page
        await answer(anna, record, "approve")
        assert "The run waits for another item" in await anna.read(place_of(record))


async def test_item_of_a_cancelled_run_is_closed(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        await anna.wiring.desk.cancel(record.run.id, Actor(id="anna", kind=ActorKind.HUMAN))
        page = await anna.read(place_of(record))
        assert "cancelled" in page
        assert 'class="approval"' not in page
        assert "cancelled" in await answer(anna, record, "approve", 409)


async def test_item_page_shows_the_lease(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        await answer(anna, record, "approve")
        await take_up(anna.wiring, record)
        page = await anna.read(place_of(record))
        assert "A worker has it (worker:1, attempt 1) <time" in page
        assert "running</span>" in page


@pytest.mark.parametrize("place", ["/items/sus_1/i1", "/items/%2e%2e/i1", "/items/%00/i1", "/items/sus_1/%3Cscript%3E"])
async def test_missing_item_shows_a_page(settings: Settings, place: str) -> None:
    async with visit(settings) as anna:
        page = await anna.read(place, 404)
        assert "<script>" not in page
        record = await asked(anna.wiring)
        assert "This item does not exist, or is not yours to see." in await anna.read(place_of(record, "i9"), 404)


async def test_item_page_of_a_call_without_arguments(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(BOOK_HOTEL, {}))
        assert "No arguments." in await anna.read(place_of(record))


async def test_item_page_shows_removed_arguments(settings: Settings) -> None:
    async with visit(settings) as anna:
        anything = REFUND.model_copy(update={"name": "anything", "parameters": {"type": "object"}})
        await anna.wiring.runs.save_definitions([anything])
        record = await asked(anna.wiring, make_ask(anything, {"order_id": "A-1932"}))
        await answer(anna, record, "edit", f0="{}")
        assert '<tr class="removed"><th scope="row">order_id</th>' in await anna.read(place_of(record))


async def test_item_page_shows_the_edits_of_earlier_decisions(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"quorum": {"approve": 2}}))
        record = await decide(anna.wiring, record, "approve", args={**REFUND_ARGS, "amount": 7})
        page = await anna.read(place_of(record))
        assert '<code>amount</code> <span class="literal"><span class="money" data-currency="EUR"' in page
        assert "<code>currency</code>" not in page
        value = await asked(anna.wiring, ask_value(terms={"quorum": {"approve": 2}}))
        value = await decide(anna.wiring, value, "value", value="HH-7731")
        assert '<code>loyalty_code</code> <span class="text">HH-7731</span>' in await anna.read(place_of(value))
        denied = await asked(anna.wiring, ask_value(terms={"quorum": {"deny": 2}}))
        denied = await decide(anna.wiring, denied, "deny")
        assert "<code>loyalty_code</code> null" not in await anna.read(place_of(denied))


async def test_item_page_without_scripts_has_one_approve_form(settings: Settings) -> None:
    async with visit(settings) as anna:
        place = place_of(await asked(anna.wiring))
        first, editing = await anna.read(place), await anna.read(f"{place}?answer=edit")
        assert 'class="approval"' in first
        assert 'class="edit"' not in first
        assert 'class="approval"' not in editing
        assert 'class="edit" id="edit" aria-label="Edited arguments">' in editing


async def test_item_page_without_edit_ignores_the_edit_link(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(allowed=("approve", "deny")))
        page = await anna.read(f"{place_of(record)}?answer=edit")
        assert 'class="approval"' in page
        assert 'class="edit"' not in page


async def test_pages_warn_of_a_resembling_tool_name(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask().model_copy(update={"resembles": ("refund_payment",)}))
        warning = "This tool name resembles refund_payment in the rules but is not the same. Those rules apply too."
        assert warning in await anna.read(place_of(record))
        assert "look-alike name" in await anna.read("/")
        plain = await asked(anna.wiring)
        assert "resembles refund_payment" not in await anna.read(place_of(plain))
