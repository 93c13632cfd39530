"""One record that cannot be read is shown and counted, cannot be decided, and hides none of the others."""

import pytest
from httpx import AsyncClient
from redis import Redis

from sayso.core.clock import DAY_MS
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Unreadable
from service.assembly import assemble
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.operate.diagnostics import diagnose
from tests.builders import approve, finish, make_pending, person
from tests.service.damages import KEYS, add_field, alter, raise_amount, tear
from tests.service.edge.web.sites import settings_for, visit
from tests.service.worlds import World
from tests.waits import until
from workers.clock.ticks import process_due
from workers.retention import forget_old

LISTS = ("/api/v1/suspensions", "/api/v1/suspensions?status=decided", "/api/v1/runs", "/api/v1/runs?status=suspended")


async def break_two(wiring: Wiring, url: str) -> tuple[SuspensionRecord, SuspensionRecord, list[SuspensionRecord]]:
    """One that waits is torn, one that is decided is of a later version; the others are as they were."""
    waiting, decided = await make_pending(wiring), await approve(wiring, await make_pending(wiring))
    whole = [await make_pending(wiring), await approve(wiring, await make_pending(wiring))]
    tear(url, waiting.id)
    alter(url, decided.id, add_field)
    return waiting, decided, whole


async def read_unreadable(client: AsyncClient, place: str) -> list[str]:
    answer = await client.get(place)
    assert answer.status_code == 200, answer.text
    assert answer.json()["suspensions" if "suspensions" in place else "runs"], "the others are listed"
    return [one["suspension_id"] for one in answer.json()["unreadable"]]


async def test_lists_of_the_api_name_an_unreadable_record(world: World, clean_store_url: str) -> None:
    waiting, decided, whole = await break_two(world.wiring, clean_store_url)
    async with world.client("anna") as anna, world.client("other") as other:
        assert await read_unreadable(anna, LISTS[0]) == [waiting.id]
        assert await read_unreadable(anna, LISTS[1]) == [decided.id]
        assert sorted(await read_unreadable(anna, LISTS[2])) == sorted([waiting.id, decided.id])
        assert await read_unreadable(anna, LISTS[3]) == [waiting.id]
        page = (await anna.get("/api/v1/suspensions?limit=1")).json()
        following = (await anna.get(f"/api/v1/suspensions?limit=1&skip={page['next_skip']}")).json()
        shown = [one["id"] for one in (*page["suspensions"], *following["suspensions"])]
        assert shown == [whole[0].id], "no page is cut short by what is unreadable"
        for place in LISTS:
            assert (await other.get(place)).json()["unreadable"] == [], "what is another agent's is not named"


async def test_unreadable_record_is_reported_by_readyz_and_doctor(world: World, clean_store_url: str) -> None:
    waiting, decided, _ = await break_two(world.wiring, clean_store_url)
    async with world.client() as nobody:
        assert (await nobody.get("/readyz")).json()["unreadable"] == 2
    found = {one.part: one async for one in diagnose(world.wiring)}
    assert not found["records"].ok
    assert "2 of 4 cannot be read" in found["records"].message
    assert waiting.id in found["records"].message
    assert f"{decided.id}: It is not a record as this version writes it: mood" in found["records"].message
    assert "later version" in found["records"].message
    with Redis.from_url(clean_store_url) as store:
        store.delete(KEYS.suspension(waiting.id), KEYS.suspension(decided.id))
    assert [one.ok async for one in diagnose(world.wiring) if one.part == "records"] == [True]
    async with world.client() as nobody:
        assert (await nobody.get("/readyz")).json()["unreadable"] == 0


async def test_an_unreadable_record_by_its_id_is_a_sentence(world: World, clean_store_url: str) -> None:
    waiting, _, _ = await break_two(world.wiring, clean_store_url)
    places = (f"/api/v1/suspensions/{waiting.id}", f"/api/v1/runs/{waiting.run.id}")
    for who in ("anna", "demo"):
        async with world.client(who) as client:
            for place in places:
                answer = await client.get(place)
                assert (answer.status_code, answer.json()["type"]) == (409, "/problems/unreadable")
                assert waiting.id in answer.json()["detail"]
    async with world.client("other") as other:
        for place in places:
            missing = await other.get(f"{place[:-4]}0000")
            foreign = await other.get(place)
            assert (foreign.status_code, missing.status_code) == (404, 404)
            assert foreign.json()["detail"].replace(place[-4:], "0000") == missing.json()["detail"]


async def test_pages_show_an_unreadable_record_beside_the_others(
    clean_store_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with visit(settings_for(clean_store_url, tmp_path_factory.mktemp("home"))) as anna:
        waiting, decided, whole = await break_two(anna.wiring, clean_store_url)
        for place, broken, fine in (
            ("/", waiting, f"/items/{whole[0].id}/i1"),
            ("/history", decided, f"/items/{whole[1].id}/i1"),
            ("/runs", waiting, f"/runs/{whole[0].run.id}"),
        ):
            page = await anna.read(place)
            assert "Unreadable record" in page
            assert broken.id in page
            assert f'href="{fine}"' in page
        for place in (f"/items/{waiting.id}/i1", f"/runs/{waiting.run.id}", f"/?q={waiting.id}"):
            assert "cannot be read" in await anna.read(place, 409)


async def test_altered_arguments_are_never_shown_or_decided(world: World, clean_store_url: str) -> None:
    record = await make_pending(world.wiring)
    digest = record.items[0].digest
    alter(clean_store_url, record.id, raise_amount)
    async with world.client("anna") as anna:
        shown = (await anna.get("/api/v1/suspensions")).text
        assert "9999" not in shown
        assert "altered in the store" in shown
        place = f"/api/v1/suspensions/{record.id}/items/i1/decision"
        for action in ("approve", "deny"):
            answer = await anna.post(place, json={"action": action, "digest": digest})
            assert (answer.status_code, answer.json()["type"]) == (409, "/problems/unreadable")


async def test_approved_arguments_that_were_altered_start_nothing(wiring: Wiring, clean_store_url: str) -> None:
    record = await make_pending(wiring)
    edited = DecisionRequest(action="approve", digest=record.items[0].digest, args={"order": "A-1", "amount": 7})
    await wiring.desk.decide(record.id, "i1", edited, person("anna"))
    alter(clean_store_url, record.id, lambda doc: doc["items"][0]["outcome"]["args"].update(amount=9_999))
    (ready,) = await wiring.schedule.take(0.01)
    with pytest.raises(Unreadable, match="altered in the store"):
        await wiring.desk.lease(record.id, "worker-1", 30_000)
    other = await make_pending(wiring)
    assert wiring.desk.suspensions.recall_packed(other.id, ready.packed) is None, "it is another's record"


async def test_a_record_moved_under_another_id_is_unreadable(wiring: Wiring, clean_store_url: str) -> None:
    cheap, dear = await make_pending(wiring), await make_pending(wiring)
    with Redis.from_url(clean_store_url) as store:
        store.copy(KEYS.suspension(cheap.id), KEYS.suspension(dear.id), replace=True)
    with pytest.raises(Unreadable, match="another suspension"):
        await wiring.desk.suspensions.read(dear.id)


async def test_retention_passes_over_an_unreadable_run(
    clean_store_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = settings_for(clean_store_url, tmp_path_factory.mktemp("home"))
    async with assemble(Settings.model_validate({**settings.model_dump(), "keep_runs_days": 2})) as wiring:
        ended = [await finish(wiring, await approve(wiring, await make_pending(wiring))) for _ in range(3)]
        tear(clean_store_url, ended[0].id)
        later_ms = await wiring.schedule.now_ms() + 3 * DAY_MS
        assert (await forget_old(wiring, later_ms))[0] == 2
        assert (await forget_old(wiring, later_ms))[0] == 0
        assert [one.suspension_id for one in await wiring.inspections.sample()] == [ended[0].id]


async def test_the_clock_expires_others_beside_an_unreadable_record(wiring: Wiring, clean_store_url: str) -> None:
    late = [await make_pending(wiring, late_ms=299_900) for _ in range(3)]
    tear(clean_store_url, late[1].id)
    after_ms = max(one.items[0].terms.deadline_at_ms for one in late)

    async def are_due() -> bool:
        return await wiring.schedule.now_ms() > after_ms

    await until(are_due)
    assert await process_due(wiring) == 3
    assert await process_due(wiring) == 0, "an unreadable record is due again in a minute"
    readable = await wiring.desk.suspensions.read_many([one.id for one in late])
    assert [(one.id, one.status) for one in readable] == [(late[0].id, "decided"), (late[2].id, "decided")]
