"""An admin erases the contents of an ended run, and every page that showed them says so."""

from sayso.core.records.decisions import Actor, ActorKind
from service.core.settings import Settings
from service.core.store.precedents import Precedents
from service.core.store.runs.erasures import Why
from service.core.wiring import Wiring
from tests.builders import person
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import REFUND_ARGS, asked, decide, finish, make_ask, place_of
from tests.service.edge.web.test_freezes import make_admin

ORDER = "A-1932"


async def make_why(wiring: Wiring) -> Why:
    """The reason of an erasure by age."""
    by = Actor(id="worker", kind=ActorKind.WORKER, channel="retention")
    return Why(by, "SAYSO_KEEP_CALLS_DAYS is 1", await wiring.schedule.now_ms())


async def test_admin_erases_the_contents_of_an_ended_run(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        record = await asked(anna.wiring, title=f"Broken cup of {ORDER}")
        path = f"/runs/{record.run.id}"
        assert "Erase the contents" not in await anna.read(path), "it may still run"
        await anna.read(f"{path}/erase", 303)
        await finish(anna.wiring, await decide(anna.wiring, record, "approve"), {"refund_id": ORDER})
        assert f'href="{path}/erase"' in await anna.read(path)
        assert "Erase the contents of this run?" in await anna.read(f"{path}/erase")
        assert "An erasure needs a reason." in await anna.send(f"{path}/erase", 422, reason=" ")
        await anna.send(f"{path}/erase", reason="Ticket <4711>")
        for place in (path, place_of(record), "/history"):
            page = await anna.read(place)
            assert "ontents erased" in page, place
            assert "no arguments" not in page, place
            assert ORDER not in page, place
            assert "ben" in page, "who decided stays"
        for place in (path, place_of(record)):
            page = await anna.read(place)
            assert "Ticket &lt;4711&gt;" in page
            assert "anna erased arguments, texts and results" in page
        assert "The arguments were erased." in await anna.read(place_of(record))
        assert "Erase the contents" not in await anna.read(path)
        await anna.read(f"{path}/erase", 303)
        for kind in ("csv", "json"):
            export = await anna.read(f"/history/export?format={kind}")
            assert "refund_payment" in export
            assert ORDER not in export


async def test_reviewer_cannot_erase(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await finish(anna.wiring, await decide(anna.wiring, await asked(anna.wiring), "deny"))
        path = f"/runs/{record.run.id}"
        assert "/erase" not in await anna.read(path)
        await anna.read(f"{path}/erase", 403)
        await anna.send(f"{path}/erase", 403, reason="mine")
        assert (await anna.wiring.runs.read(record.run.id)).erasure is None


async def test_erased_value_and_denial_are_shown_without_texts(settings: Settings) -> None:
    async with visit(settings) as anna:
        for action in ("deny", "cancel"):
            record = await asked(anna.wiring, make_ask(reason=f"Order {ORDER}"))
            if action == "cancel":
                await anna.wiring.desk.cancel(record.run.id, person("ben"), f"Not {ORDER}")
            else:
                await finish(anna.wiring, await decide(anna.wiring, record, action, message=f"Not {ORDER}"))
            await anna.wiring.retention.erasures.erase(record.run.id, await make_why(anna.wiring))
            for place in (f"/runs/{record.run.id}", place_of(record), "/history", f"/history?q={ORDER}"):
                page = await anna.read(place)
                assert f"Not {ORDER}" not in page, place
                assert f"Order {ORDER}" not in page, place
            assert "as the settings say" in await anna.read(place_of(record))


async def test_erased_denial_is_kept_for_no_near_call(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await finish(anna.wiring, await decide(anna.wiring, await asked(anna.wiring), "deny"))
        near = await asked(anna.wiring, make_ask(args={**REFUND_ARGS, "amount": 249}))
        assert "denied a similar call" in await anna.read(place_of(near))
        await anna.wiring.retention.erasures.erase(record.run.id, await make_why(anna.wiring))
        assert "denied a similar call" not in await anna.read(place_of(near))
        assert await anna.wiring.part(Precedents).find_near(near, near.items[0]) == []
