"""Cards go to the linked addresses of active reviewers."""

import pytest

from sayso.core.calendar import Hours, WorkingHours
from sayso.core.clock import now_ms
from sayso.wire.people import Preferences
from service.channels.base import Recipient
from service.core.auth.roles import find_rights
from service.core.wiring import Wiring
from tests.builders import make_person
from tests.waits import until
from workers.notify.attempts import ContactBook


@pytest.fixture
async def book(wiring: Wiring) -> ContactBook:
    for name in ("anna", "ben"):
        await make_person(wiring, name)
        code = await wiring.contacts.create_code(name, "ops")
        await wiring.contacts.redeem_code("ops", code.code, f"U-{name}")
    await wiring.groups.create("payments", ("anna", "ben"), (), "root")
    return ContactBook(wiring)


async def test_person_is_found_at_their_linked_address(book: ContactBook) -> None:
    assert await book.find("ops", "anna") == (Recipient("anna", "U-anna"),)
    assert await book.find("mail", "anna") == ()


async def test_group_is_found_by_its_members(book: ContactBook) -> None:
    assert [one.person for one in await book.find("ops", "group:payments")] == ["anna", "ben"]
    assert await book.find("ops", "group:none") == ()


async def test_everybody_linked_is_found_without_a_name(book: ContactBook, wiring: Wiring) -> None:
    await make_person(wiring, "carla")
    assert [one.person for one in await book.find("ops", "")] == ["anna", "ben"]


async def test_deactivated_person_is_not_found(book: ContactBook, wiring: Wiring) -> None:
    await wiring.reviewers.deactivate("anna")
    assert await book.find("ops", "anna") == ()
    assert [one.person for one in await book.find("ops", "group:payments")] == ["ben"]


async def test_deactivated_person_is_soon_forgotten(book: ContactBook, wiring: Wiring) -> None:
    assert await book.find("ops", "anna") != ()
    await wiring.reviewers.deactivate("anna")

    async def forgotten() -> bool:
        return await book.find("ops", "anna") == ()

    await until(forgotten)


async def test_delegate_stands_in_for_an_absent_person(book: ContactBook, wiring: Wiring) -> None:
    await make_person(wiring, "carla")
    await wiring.duty.add_absence("anna", now_ms() - 1, now_ms() + 60_000, "ben", "anna")
    assert await book.find("ops", "anna") == (Recipient("ben", "U-ben"),)
    assert [one.person for one in await book.find("ops", "group:payments")] == ["ben"]
    assert [one.person for one in await book.find("ops", "")] == ["ben"]
    assert await book.find("ops", "anna", "ben") == (), "never the requester"


async def test_absent_person_without_delegate_is_not_found(book: ContactBook, wiring: Wiring) -> None:
    await wiring.duty.add_absence("anna", now_ms() - 1, now_ms() + 60_000, None, "anna")
    assert await book.find("ops", "anna") == ()


async def test_working_hours_are_those_of_the_group_that_is_asked(book: ContactBook, wiring: Wiring) -> None:
    office, nights = WorkingHours(), WorkingHours(hours=Hours(start="22:00", end="06:00"))
    for name in ("carla", "dora"):
        await make_person(wiring, name)
    await wiring.groups.update("payments", ("anna", "ben"), (), "root", find_rights(["admin"], {}), office)
    await wiring.groups.create("nights", ("carla",), (), "root", nights)
    await wiring.duty.save_preferences("ben", Preferences(working_hours=nights), "ben")

    async def hours(person: str, *reviewers: str) -> WorkingHours | None:
        return (await book.find_preferences(person, reviewers)).working_hours

    asked = ("group:payments", "group:nights", "group:none")
    assert [await hours(name, *asked) for name in ("anna", "ben", "carla", "dora")] == [office, nights, nights, office]
    assert await hours("anna", "anna", *asked) is None, "who is named in person has no fixed hours"
    assert await hours("anna") is None
