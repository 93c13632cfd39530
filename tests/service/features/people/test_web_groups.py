"""The groups page, and decisions of members on the pages."""

from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, add_people, visit
from tests.service.edge.web.stories import asked, make_ask, place_of
from tests.service.edge.web.test_freezes import make_admin


async def test_admin_creates_changes_and_deletes_a_group(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await add_people(anna.wiring, "ben")
        assert "There are no groups." in await anna.read("/groups")
        form = {"name": "payments", "members": "anna, ben", "editors": "ben"}
        working = {"working-start": "09:00", "working-end": "17:00", "working-mon": "on", "time_zone": "Europe/Berlin"}
        assert await anna.send("/groups", 303, **form, **working, country="de") == "/groups?done=created"
        page = await anna.read("/groups?done=created")
        assert "anna and ben; edited by ben" in page
        assert "Working hours 09:00 to 17:00, Mon, Europe/Berlin, holidays of DE" in page
        assert await anna.send("/groups/payments", members="ben", editors="") == "/groups?done=changed"
        assert (await anna.wiring.groups.read("payments")).members == ("ben",)
        assert await anna.send("/groups/payments", act="delete") == "/groups?done=deleted"
        assert "There are no groups." in await anna.read("/groups")


async def test_refused_group_shows_the_input_again(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        page = await anna.send("/groups", 422, name="payments", members="nobody")
        assert "No active reviewer is named nobody" in page
        assert 'value="payments"' in page
        await anna.wiring.groups.create("payments", (), (), "root")
        page = await anna.send("/groups/payments", 422, members="someone-else", editors="")
        assert "No active reviewer is named someone-else" in page
        assert ">\nsomeone-else</textarea>" in page
        await anna.send("/groups/missing", 404, members="", editors="")
        times = {"working-start": "9", "working-end": "17:00", "working-mon": "on"}
        assert "a start, an end and at least one weekday" in await anna.send("/groups", 422, name="x", **times)


async def test_editor_changes_members_but_not_editors(settings: Settings) -> None:
    async with visit(settings) as anna:
        await add_people(anna.wiring, "ben")
        await anna.wiring.groups.create("payments", (), ("anna",), "root")
        await anna.wiring.groups.create("ops", (), ("ben",), "root")
        page = await anna.read("/groups")
        assert 'action="/groups/payments"' in page
        assert 'action="/groups/ops"' not in page
        assert 'name="editors"' not in page
        assert await anna.send("/groups/payments", members="anna ben", editors="ben") == "/groups?done=changed"
        saved = await anna.wiring.groups.read("payments")
        assert (saved.members, saved.editors) == (("anna", "ben"), ("anna",))
        await anna.send("/groups/ops", 403, members="anna")
        await anna.send("/groups/payments", 403, act="delete")
        await anna.send("/groups", 403, name="new", members="")
        forged = await anna.client.post("/groups/payments", data={"csrf": CSRF[:-1] + "d"}, headers=OWN)
        assert forged.status_code == 403


async def test_member_sees_and_decides_an_item_for_the_group(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"reviewers": ["group:payments"]}))
        place, digest = place_of(record), record.items[0].digest
        assert "Only the group payments can decide this." in await anna.read(place)
        assert "Only the group payments can decide this." in await anna.read("/")
        await anna.wiring.groups.create("payments", ("anna",), (), "root")
        anna.wiring.credentials.forget(anna.client.cookies["sayso_session_8321"])
        assert "Only the group payments" not in await anna.read(place)
        await anna.send(place, answer="approve", digest=digest)
        assert "anna approved this" in await anna.read(place)
