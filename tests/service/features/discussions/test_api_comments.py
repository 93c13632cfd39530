"""Comments over the API: people read and write them, agents do neither."""

from tests.builders import approve, finish, make_pending
from tests.service.worlds import World


async def test_comment_is_kept_once_and_hidden_from_the_agent(world: World) -> None:
    record = await make_pending(world.wiring)
    place = f"/api/v1/suspensions/{record.id}/items/i1/comments"
    async with world.client("anna") as anna, world.client("demo") as demo:
        headers = {"Idempotency-Key": "c1"}
        first = await anna.post(place, json={"text": "Looks odd."}, headers=headers)
        sent = await anna.post(place, json={"text": "Looks odd."}, headers=headers)
        assert (first.status_code, sent.json()) == (200, first.json())
        (comment,) = sent.json()["comments"]
        assert (comment["author"], comment["text"], comment["item_id"]) == ("anna", "Looks odd.", "i1")
        again = await anna.post(place, json={"text": "Other text"}, headers={"Idempotency-Key": "c1"})
        assert again.status_code == 409
        assert (await anna.get(f"/api/v1/runs/{record.run.id}/comments")).json() == sent.json()
        assert (await demo.get(f"/api/v1/runs/{record.run.id}/comments")).status_code == 403
        assert (await demo.post(place, json={"text": "Let me"})).status_code == 403
        for path in (f"suspensions/{record.id}", f"runs/{record.run.id}/events", f"runs/{record.run.id}/timeline"):
            assert "Looks odd." not in (await demo.get(f"/api/v1/{path}")).text


async def test_comment_changes_neither_version_nor_digest(world: World) -> None:
    record = await make_pending(world.wiring)
    async with world.client("anna") as anna:
        place = f"/api/v1/suspensions/{record.id}/items/i1"
        await anna.post(f"{place}/comments", json={"text": "First look."})
        found = (await world.wiring.desk.suspensions.read(record.id)).record
        assert found == record
        body = {"action": "approve", "digest": record.items[0].digest}
        assert (await anna.post(f"{place}/decision", json=body)).status_code == 200


async def test_comment_after_the_end_of_the_run(world: World) -> None:
    ended = await finish(world.wiring, await approve(world.wiring, await make_pending(world.wiring)))
    place = f"/api/v1/suspensions/{ended.id}/items/i1/comments"
    async with world.client("anna") as anna:
        assert (await anna.post(place, json={"text": "Audited."})).status_code == 200
        assert (await anna.post(place, json={"text": " "})).status_code == 422
        assert (await anna.post(place, json={"text": "x" * 2001})).status_code == 422
        assert (await anna.post(place.replace("i1", "i9"), json={"text": "x"})).status_code == 404
