"""Wrong numbers are counted for each reviewer and item, and the API shows numbers to the requester alone."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from sayso.core.clock import new_number
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import assign_numbers
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.errors import StaleDigest, TooManyRequests, WrongNumber
from service.core.wiring import Wiring
from tests.builders import ask, make_pending, person


async def make_numbered(wiring: Wiring, **terms: Any) -> SuspensionRecord:
    drafts = assign_numbers((ask(terms=RuleTerms(match_number=True, **terms)),), new_number)
    return await make_pending(wiring, *drafts)


def other_than(record: SuspensionRecord) -> str:
    return "00" if record.items[0].secret_number != "00" else "11"


async def decide(wiring: Wiring, record: SuspensionRecord, number: str, by: str = "anna", **fields: Any) -> None:
    given = {"action": "approve", "digest": record.items[0].digest, "number": number, **fields}
    await wiring.desk.decide(record.id, "i1", DecisionRequest.model_validate(given), person(by))


async def test_fourth_number_is_refused_even_if_right(wiring: Wiring) -> None:
    record = await make_numbered(wiring)
    for _ in range(3):
        with pytest.raises(WrongNumber):
            await decide(wiring, record, other_than(record))
    with pytest.raises(TooManyRequests) as refused:
        await decide(wiring, record, record.items[0].secret_number)
    assert 0 < int(str(refused.value.facts["retry_after_s"])) <= 600
    assert (await wiring.desk.suspensions.read(record.id)).record.items[0].open


async def test_other_reviewers_and_items_have_their_own_count(wiring: Wiring) -> None:
    record, other = await make_numbered(wiring), await make_numbered(wiring)
    for _ in range(3):
        with pytest.raises(WrongNumber):
            await decide(wiring, record, other_than(record))
    await decide(wiring, other, other.items[0].secret_number)
    await decide(wiring, record, record.items[0].secret_number, by="ben")
    assert not (await wiring.desk.suspensions.read(record.id)).record.items[0].open


async def test_denial_is_possible_after_wrong_numbers(wiring: Wiring) -> None:
    record = await make_numbered(wiring)
    for _ in range(3):
        with pytest.raises(WrongNumber):
            await decide(wiring, record, other_than(record))
    no = DecisionRequest(action="deny", digest=record.items[0].digest)
    await wiring.desk.decide(record.id, "i1", no, person("anna"))


async def guess(wiring: Wiring) -> str:
    """Type a wrong number for a new item; return the name of the error."""
    record = await make_numbered(wiring)
    try:
        await decide(wiring, record, other_than(record))
    except (WrongNumber, TooManyRequests) as refused:
        return type(refused).__name__
    return ""


async def test_guesses_over_many_items_are_limited_by_the_hour(wiring: Wiring) -> None:
    found = Counter(await asyncio.gather(*(guess(wiring) for _ in range(16))))
    assert found == {"WrongNumber": 10, "TooManyRequests": 6}
    record = await make_numbered(wiring)
    with pytest.raises(TooManyRequests) as refused:
        await decide(wiring, record, record.items[0].secret_number)
    assert 600 < int(str(refused.value.facts["retry_after_s"])) <= 3_600
    await decide(wiring, record, record.items[0].secret_number, by="ben")


async def test_right_numbers_neither_use_up_guesses_nor_give_new_ones(wiring: Wiring) -> None:
    for _ in range(9):
        assert await guess(wiring) == "WrongNumber"
    for _ in range(3):
        record = await make_numbered(wiring)
        await decide(wiring, record, record.items[0].secret_number)
    assert [await guess(wiring) for _ in range(2)] == ["WrongNumber", "TooManyRequests"]


async def test_other_refusals_are_not_counted(wiring: Wiring) -> None:
    record = await make_numbered(wiring)
    for _ in range(5):
        with pytest.raises(StaleDigest):
            await decide(wiring, record, other_than(record), digest="0" * 64)
    await decide(wiring, record, record.items[0].secret_number)


async def test_saved_number_survives_the_store(wiring: Wiring) -> None:
    record = await make_numbered(wiring)
    found = (await wiring.desk.suspensions.read(record.id)).record
    assert found.items[0].secret_number == record.items[0].secret_number
    assert len(record.items[0].secret_number) == 2
