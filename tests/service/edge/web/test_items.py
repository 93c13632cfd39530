"""A word given on the page of an item counts once, as it was given, or is sent back with nothing lost."""

import asyncio
import re
from typing import Any

import pytest
from pydantic import JsonValue

from sayso.core.records.items import Doubt
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.text.summaries import write_pretty
from sayso.core.transitions.permits import put_in_doubt
from service.core.settings import Settings
from service.edge.http.assets import unmask_token
from tests.service.edge.web.sites import TOKEN, Visit, visit
from tests.service.edge.web.stories import (
    BOOK_HOTEL,
    BOOK_HOTEL_ARGS,
    REFUND,
    REFUND_ARGS,
    ask_value,
    asked,
    decide,
    finish,
    make_ask,
    place_of,
)


async def now(anna: Visit, record: SuspensionRecord) -> Any:
    found = await anna.wiring.desk.suspensions.read(record.id)
    assert found.record is not None
    return found.record.items[0]


async def answer(anna: Visit, record: SuspensionRecord, word: str, status: int = 303, **fields: str) -> str:
    digest = record.items[0].digest
    return await anna.send(place_of(record), status, **{"answer": word, "digest": digest, **fields})


def fields_of_refund(**typed: str) -> dict[str, str]:
    fields = {
        "f0": "A-1932",
        "f1": "250",
        "f2": '"EUR"',
        "f3": "true",
        "f4": "Sorry for the broken cup.\r\nHere is your money back.",
        "f5": '[{"sku": "CUP-7", "count": 2}]',
    }
    return {**fields, **typed}


async def test_approve_shows_the_receipt_and_then_the_result(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        assert await answer(anna, record, "approve") == place_of(record)
        page = await anna.read(place_of(record))
        assert "anna approved this" in page
        assert "A worker has it <span" in page
        assert 'class="approval"' not in page
        item = await now(anna, record)
        assert (item.outcome.by.id, item.outcome.by.channel) == ("anna", "web")
        await finish(anna.wiring, record, {"refund_id": "rf_81"})
        page = await anna.read(place_of(record))
        for words in ("The run resumed", "refund_payment ran in 12 ms", "rf_81", "completed</span>"):
            assert words in page, words


async def test_repeated_approve_is_one_decision(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        places = await asyncio.gather(*(answer(anna, record, "approve") for _ in range(5)))
        assert set(places) == {place_of(record)}
        assert len((await now(anna, record)).decisions) == 1


async def test_edit_changes_the_arguments(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        await answer(anna, record, "edit", 303, **fields_of_refund(f1="120", f4="Half of it"))
        outcome = (await now(anna, record)).outcome
        assert outcome.args == {**REFUND_ARGS, "amount": 120, "note": "Half of it"}
        page = await anna.read(place_of(record))
        assert "anna approved this with 2 changes" in page
        (row,) = re.findall(r'<tr class="changed"><th scope="row">amount</th>(.*?)</tr>', page)
        assert re.findall(r'data-currency="EUR" data-decimals="\.00">(\d+)<', row) == ["250", "120"]


async def test_untouched_edit_is_a_plain_approval(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        await answer(anna, record, "edit", 303, **fields_of_refund())
        outcome = (await now(anna, record)).outcome
        assert (outcome.verdict, outcome.args) == ("approved", None)


async def test_denial_keeps_its_reason(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        await answer(anna, record, "deny", message="Too old.\r\nSorry.")
        assert (await now(anna, record)).outcome.message == "Too old.\nSorry."
        page = await anna.read(place_of(record))
        assert "anna denied this" in page
        assert "Too old.\nSorry." in page


async def test_value_is_recorded(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, ask_value())
        page = await anna.read(place_of(record))
        assert "Your value goes into <code>loyalty_code</code>" in page
        assert 'class="approval"' not in page
        await answer(anna, record, "value", v0="HH-7731")
        outcome = (await now(anna, record)).outcome
        assert (outcome.value, outcome.args) == ("HH-7731", {**BOOK_HOTEL_ARGS, "loyalty_code": "HH-7731"})
        assert "anna gave a value" in await anna.read(place_of(record))


async def test_value_keeps_its_type(settings: Settings) -> None:
    async with visit(settings) as anna:
        choice = await asked(anna.wiring, ask_value(target_arg="nights", choices=(1, 2, 3)))
        await answer(anna, choice, "value", v0="3")
        assert (await now(anna, choice)).outcome.value == 3
        schema = {
            "type": "object",
            "properties": {"code": {"type": "string"}, "tier": {"type": "integer"}},
            "required": ["code"],
        }
        thing = await asked(anna.wiring, ask_value(target_arg="guest", response_schema=schema))
        await answer(anna, thing, "value", v0="HH", v1="")
        assert (await now(anna, thing)).outcome.value == {"code": "HH"}


async def test_invalid_input_is_marked_and_kept(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        page = await answer(anna, record, "edit", 422, **fields_of_refund(f1="a lot", f4="My own words"))
        for words in ('role="alert"', "Enter a number", 'value="a lot"', "My own words", 'aria-invalid="true"'):
            assert words in page, words
        assert 'class="edit"' in page
        assert 'class="approval"' not in page
        assert "?answer=edit" not in page
        assert (await now(anna, record)).open


async def test_input_that_violates_the_schema_is_marked(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        page = await answer(anna, record, "edit", 422, **fields_of_refund(f1="9999"))
        assert 'id="f1-problem">9999 is greater than the maximum of 5000' in page
        value = await asked(anna.wiring, ask_value())
        page = await answer(anna, value, "value", 422, v0="HH")
        assert 'id="v0-problem">' in page
        assert 'value="HH"' in page


async def test_edit_that_the_rules_deny_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        page = await answer(anna, record, "edit", 403, **fields_of_refund(f1="2000"))
        assert "The rules do not allow this" in page
        assert "Nobody refunds more than 1000 here" in page
        assert 'value="2000"' in page


async def test_edit_of_another_type_cannot_evade_a_deny_rule(settings: Settings) -> None:
    async with visit(settings) as anna:
        anything = REFUND.model_copy(update={"parameters": {"type": "object"}})
        await anna.wiring.runs.save_definitions([anything])
        record = await asked(anna.wiring, make_ask(anything, {"amount": 5}))
        page = await answer(anna, record, "edit", 403, f0='{"amount": "5000"}')
        assert "The rules might deny refund_payment with these final arguments, but cannot evaluate them" in page
        assert "5000" in page


async def test_second_decision_shows_the_first_and_keeps_the_input(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        await decide(anna.wiring, record, "deny", name="ben", message="I know them.")
        page = await answer(anna, record, "deny", 409, message="My long reason")
        for words in ("Already decided", "ben denied this", "I know them.", "My long reason", "was not used"):
            assert words in page, words
        page = await answer(anna, record, "edit", 409, **fields_of_refund(f4="My note"))
        assert "My note" in page


async def test_second_decision_of_the_same_reviewer_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        await answer(anna, record, "approve")
        page = await answer(anna, record, "deny", 409)
        assert "You have already decided this" in page
        assert "anna approved this" in page
        assert "was not used" not in page


async def test_second_decision_in_a_quorum_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"quorum": {"approve": 2}}))
        await answer(anna, record, "approve")
        page = await answer(anna, record, "deny", 409, message="On second thoughts")
        for words in ("You have already decided this", "Your first decision counts", "On second thoughts"):
            assert words in page, words


async def test_stale_digest_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        page = await answer(anna, record, "deny", 409, digest="0" * 64, message="Because")
        assert "The request has changed" in page
        assert "Because</textarea>" in page
        assert record.items[0].digest in page
        assert (await now(anna, record)).open


async def test_decision_after_the_deadline_shows_the_fallback(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"timeout_s": 0}))
        page = await answer(anna, record, "approve", 409)
        assert "<h2>The deadline has passed</h2>" in page
        assert "<p>Denied: nobody answered in time. Nothing was changed.</p>" in page
        assert 'class="approval"' not in page


async def test_answer_that_the_item_does_not_allow_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        assert "asks for approval, not for a value" in await answer(anna, record, "value", 422, v0="x")
        assert "Choose one of the decisions" in await answer(anna, record, "maybe", 422)
        assert (await now(anna, record)).open


async def test_edit_without_a_definition_is_json(settings: Settings) -> None:
    async with visit(settings) as anna:
        unknown = BOOK_HOTEL.model_copy(update={"name": "mystery"})
        record = await asked(anna.wiring, make_ask(unknown, {"a": {"b": 1}}))
        await answer(anna, record, "edit", f0='{"a": {"b": 2}}')
        assert (await now(anna, record)).outcome.args == {"a": {"b": 2}}


async def test_call_in_doubt_offers_its_choices(settings: Settings) -> None:
    call = ToolCall(call_id="call_0", index=0, name=REFUND.name, args=REFUND_ARGS)
    doubt = Doubt(begun_at_ms=1_795_262_584_120, holder="host:1", attempt=1, idempotency_key="sus_0:i1")
    async with visit(settings) as anna:
        record = await asked(anna.wiring, put_in_doubt(call, REFUND.digest, doubt))
        page = await anna.read(place_of(record))
        for words in (
            "Refund payment EUR 250.00: did it run?",
            "may already have run</span>",
            "by host:1, attempt 1; no result was reported",
            "sus_0:i1",
            "It did run",
            "It did not run",
            "Continue without running it</button>",
            "Run it again</button>",
            "Stop the run</button>",
            "The run fails at <time",
        ):
            assert words in page, words
        assert "No rule covers" not in page
        assert "Send</button>" not in page
        for choice in ("run_again", "fail"):
            page = await answer(anna, record, "value", 422, v0=f'"{choice}"', v1="rf_81")
            assert 'id="v1-problem">A result is accepted only with skip.' in page
        await answer(anna, record, "value", v0='"skip"', v1="rf_81")
        assert (await now(anna, record)).outcome.value == {"choice": "skip", "result": "rf_81"}
        assert "anna chose to skip it" in await anna.read(place_of(record))


async def test_form_of_an_earlier_sign_in_keeps_the_input(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        page = await answer(anna, record, "deny", 403, message="Too old & late", csrf="d" * 64)
        assert "You have signed in again" in page
        assert "Too old &amp; late</textarea>" in page
        assert unmask_token(re.findall(r'name="csrf" value="([0-9a-f]+)"', page)[-1]) == TOKEN
        assert (await now(anna, record)).open


@pytest.mark.parametrize("typed", ["tomorrow", "2026-02-30", " 2026-02-28"])
async def test_invalid_date_is_refused(settings: Settings, typed: str) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, ask_value(response_schema={"type": "string", "format": "date"}))
        page = await answer(anna, record, "value", 422, v0=typed)
        assert "is not a &#34;date&#34;" in page
        await answer(anna, record, "value", v0="2026-02-28")
        assert (await now(anna, record)).outcome.value == "2026-02-28"


async def test_largest_arguments_can_be_edited(settings: Settings) -> None:
    async with visit(settings) as anna:
        rows: list[JsonValue] = [{"id": place, "qty": 1} for place in range(6_000)]
        record = await asked(anna.wiring, make_ask(REFUND.model_copy(update={"name": "mystery"}), {"rows": rows}))
        await answer(anna, record, "edit", f0=write_pretty({"rows": rows[1:]}).replace("\n", "\r\n"))
        assert (await now(anna, record)).outcome.args == {"rows": rows[1:]}
        page = await answer(anna, await asked(anna.wiring), "edit", 413, **fields_of_refund(f4="x" * 300_000))
        assert "x" * 300_000 in page


async def test_version_that_nobody_approved_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        terms = {"quorum": {"approve": 2}, "reviewers": ["anna", "ben"]}
        record = await asked(anna.wiring, make_ask(terms=terms))
        record = await decide(anna.wiring, record, "approve", args={**REFUND_ARGS, "amount": 48.25})
        assert "No reviewer has approved that version." in await answer(anna, record, "approve", 422, version="0" * 64)
        assert (await now(anna, record)).open
