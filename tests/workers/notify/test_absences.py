"""An absence that begins while items wait sends their cards to the delegate."""

import pytest

from sayso.core.clock import HOUR_MS, now_ms
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending, make_person
from workers.notify.interruptions import AbsenceWatch


@pytest.fixture
async def absences(wiring: Wiring) -> AbsenceWatch:
    for name in ("anna", "ben", "carla"):
        await make_person(wiring, name)
    return AbsenceWatch(wiring)


async def waiting(wiring: Wiring, *reviewers: str) -> SuspensionRecord:
    return await make_pending(wiring, ask(terms=RuleTerms(channels=("memory",), reviewers=reviewers)))


async def people_of(wiring: Wiring, record: SuspensionRecord) -> list[str]:
    item = (await wiring.desk.suspensions.read(record.id)).record.items[0]
    return [one.person for one in item.deliveries]


async def test_cards_move_when_an_absence_begins(absences: AbsenceWatch, wiring: Wiring) -> None:
    record, other = await waiting(wiring, "anna"), await waiting(wiring, "carla")
    start_ms = now_ms() + HOUR_MS
    await wiring.duty.add_absence("anna", start_ms, start_ms + HOUR_MS, "ben", "anna")
    assert await absences.move_cards() == 0
    assert await absences.move_cards(start_ms) == 1
    assert await people_of(wiring, record) == ["ben"]
    assert await people_of(wiring, other) == ["carla"]


async def test_items_are_searched_twice_for_each_absence(absences: AbsenceWatch, wiring: Wiring) -> None:
    await wiring.duty.add_absence("anna", now_ms() - 1, now_ms() + HOUR_MS, "ben", "anna")
    at_ms = now_ms()
    await absences.move_cards(at_ms)
    late = await waiting(wiring, "anna")
    assert await absences.move_cards(at_ms + 1_000) == 0
    assert await absences.move_cards(at_ms + 20_000) == 1
    assert await people_of(wiring, late) == ["ben"]
    later = await waiting(wiring, "anna")
    assert await absences.move_cards(at_ms + 60_000) == 0
    assert await people_of(wiring, later) == ["anna"], "sent to ben at once by the address book"


async def test_cards_move_on_when_the_delegate_leaves(absences: AbsenceWatch, wiring: Wiring) -> None:
    record, at_ms = await waiting(wiring, "anna"), now_ms()
    await wiring.duty.add_absence("anna", at_ms - 1, at_ms + HOUR_MS, "ben", "anna")
    await absences.move_cards(at_ms)
    await wiring.duty.add_absence("ben", at_ms - 1, at_ms + HOUR_MS, "carla", "ben")
    assert await absences.move_cards(at_ms + 1) == 1
    assert await people_of(wiring, record) == ["carla"]


async def test_cards_of_decided_items_stay(absences: AbsenceWatch, wiring: Wiring) -> None:
    record = await waiting(wiring, "anna")
    await wiring.duty.add_absence("anna", now_ms() - 1, now_ms() + HOUR_MS, "ben", "anna")
    await approve(wiring, record)
    assert await absences.move_cards() == 0
    assert await people_of(wiring, record) == ["anna"]


async def test_inactive_delegate_gets_no_card(absences: AbsenceWatch, wiring: Wiring) -> None:
    record = await waiting(wiring, "anna")
    await wiring.duty.add_absence("anna", now_ms() - 1, now_ms() + HOUR_MS, "ben", "anna")
    await wiring.reviewers.deactivate("ben")
    assert await absences.move_cards() == 0
    assert await people_of(wiring, record) == ["anna"]
