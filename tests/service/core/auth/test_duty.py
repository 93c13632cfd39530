"""Preferences and absences as people save them."""

import pytest

from sayso.core.calendar import Hours, WorkingHours
from sayso.core.clock import DAY_MS, now_ms
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.wire.people import Preferences
from service.core.auth.duty import LONGEST_ABSENCE_MS
from service.core.store.directory import MOST_ABSENCES
from service.core.wiring import Wiring
from tests.builders import make_person


@pytest.fixture
async def people(wiring: Wiring) -> None:
    await make_person(wiring, "anna")
    await make_person(wiring, "ben")


@pytest.mark.usefixtures("people")
async def test_preferences_are_saved_by_person(wiring: Wiring) -> None:
    assert await wiring.duty.find_preferences("anna") == Preferences()
    chosen = Preferences(
        time_zone="Europe/Berlin",
        quiet_hours=Hours(start="22:00", end="07:00"),
        working_hours=WorkingHours(time_zone="Europe/Berlin", country="DE"),
        digest="daily",
        cap_per_hour=4,
    )
    await wiring.duty.save_preferences("anna", chosen, "anna")
    assert await wiring.duty.find_preferences("anna") == chosen
    assert await wiring.duty.find_preferences("ben") == Preferences()


@pytest.mark.usefixtures("people")
async def test_preferences_need_a_person_and_a_known_country(wiring: Wiring) -> None:
    with pytest.raises(NotFound):
        await wiring.duty.find_preferences("dora")
    with pytest.raises(NotFound):
        await wiring.duty.save_preferences("dora", Preferences(), "root")
    with pytest.raises(InvalidInput, match="'XX' are unknown"):
        await wiring.duty.save_preferences("anna", Preferences(working_hours=WorkingHours(country="XX")), "anna")


@pytest.mark.usefixtures("people")
async def test_absences_are_added_listed_and_deleted(wiring: Wiring) -> None:
    at_ms = now_ms()
    later = await wiring.duty.add_absence("anna", at_ms + 3 * DAY_MS, at_ms + 4 * DAY_MS, None, "anna")
    first = await wiring.duty.add_absence("anna", at_ms, at_ms + DAY_MS, "ben", "root")
    other = await wiring.duty.add_absence("ben", at_ms + DAY_MS, at_ms + 2 * DAY_MS, "anna", "ben")
    assert await wiring.duty.list_absences("anna") == [first, later]
    assert await wiring.duty.list_absences() == [first, other, later]
    await wiring.duty.delete_absence("anna", first.id, "anna")
    assert await wiring.duty.list_absences("anna") == [later]
    with pytest.raises(NotFound, match="anna has no absence"):
        await wiring.duty.delete_absence("anna", other.id, "anna")


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("from_ms", "to_ms", "delegate", "words"),
    [
        (DAY_MS, DAY_MS, None, "ends after its start"),
        (-2 * DAY_MS, -DAY_MS, None, "in the future"),
        (0, LONGEST_ABSENCE_MS + DAY_MS, None, "at most 400 days"),
        (0, DAY_MS, "anna", "own delegate"),
        (0, DAY_MS, "dora", "No active reviewer is named dora"),
    ],
)
async def test_add_absence_refuses_what_cannot_be(
    wiring: Wiring, from_ms: int, to_ms: int, delegate: str | None, words: str
) -> None:
    at_ms = now_ms()
    with pytest.raises(InvalidInput, match=words):
        await wiring.duty.add_absence("anna", at_ms + from_ms, at_ms + to_ms, delegate, "anna")


@pytest.mark.usefixtures("people")
async def test_add_absence_refuses_overlaps_and_too_many(wiring: Wiring) -> None:
    at_ms = now_ms()
    for day in range(MOST_ABSENCES):
        await wiring.duty.add_absence("anna", at_ms + day * DAY_MS, at_ms + (day + 1) * DAY_MS, None, "anna")
    with pytest.raises(Conflict, match="already absent"):
        await wiring.duty.add_absence("anna", at_ms + 1, at_ms + DAY_MS // 2, None, "anna")
    with pytest.raises(Conflict, match="50 absences"):
        await wiring.duty.add_absence("anna", at_ms + 90 * DAY_MS, at_ms + 91 * DAY_MS, None, "anna")
    with pytest.raises(NotFound):
        await wiring.duty.add_absence("dora", at_ms, at_ms + DAY_MS, None, "root")
