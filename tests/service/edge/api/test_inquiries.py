"""Claims and questions over the API: reviewers ask, the run's owner answers."""

import asyncio

from sayso.core.records.terms import RuleTerms
from tests.builders import ask, make_pending, make_person
from tests.service.worlds import World, waiting


async def test_requester_is_asked_and_answers(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=RuleTerms(extend_by_s=600, deadline_waits=True)))
    path = f"/api/v1/suspensions/{record.id}"
    async with world.client("anna") as anna, world.client("demo") as demo, world.client("other") as other:
        polling = asyncio.create_task(demo.get(f"{path}/inquiries?wait=30"))
        await waiting(world, record.id)
        headers = {"Idempotency-Key": "ask-1"}
        for _ in range(2):
            asked = await anna.post(f"{path}/items/i1/inquiries", json={"text": "Which order?"}, headers=headers)
            assert asked.status_code == 200
        page = (await polling).json()
        (inquiry,) = page["inquiries"]
        assert (page["status"], inquiry["text"], inquiry["by"]["id"]) == ("pending", "Which order?", "anna")
        answer = f"{path}/items/{inquiry['item_id']}/inquiries/{inquiry['id']}/answer"
        assert (await anna.post(answer, json={"text": "A-1"})).status_code == 403
        assert (await other.post(answer, json={"text": "A-1"})).status_code == 404
        assert (await other.get(f"{path}/inquiries")).status_code == 404
        answered = await demo.post(answer, json={"text": "A-1"})
        assert answered.json()["items"][0]["inquiries"][0]["answer"] == "A-1"
        assert (await demo.get(f"{path}/inquiries")).json() == {"status": "pending", "inquiries": []}


async def test_agent_cannot_ask_or_claim(world: World) -> None:
    record = await make_pending(world.wiring)
    path = f"/api/v1/suspensions/{record.id}/items/i1"
    async with world.client("demo") as demo:
        assert (await demo.post(f"{path}/inquiries", json={"text": "Why?"})).status_code == 403
        assert (await demo.post(f"{path}/claim")).status_code == 403


async def test_claim_is_shown_and_blocks_no_decision(world: World) -> None:
    record = await make_pending(world.wiring)
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    path = f"/api/v1/suspensions/{record.id}/items/i1"
    async with world.client("anna") as anna, world.client("ben") as ben:
        claimed = (await anna.post(f"{path}/claim")).json()["items"][0]["claim"]
        assert claimed["by"]["id"] == "anna"
        assert (await ben.post(f"{path}/claim")).status_code == 409
        assert (await ben.delete(f"{path}/claim")).status_code == 409
        assert (await anna.delete(f"{path}/claim")).json()["items"][0]["claim"] is None
        await anna.post(f"{path}/claim")
        body = {"action": "approve", "digest": record.items[0].digest}
        assert (await ben.post(f"{path}/decision", json=body)).status_code == 200
