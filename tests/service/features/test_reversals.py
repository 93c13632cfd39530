"""Offers to undo a call over the API: listed apart, seen by people alone, taken once, and masked."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from httpx import Response

from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, Visit, visit
from tests.service.features.reversing import offer_undo
from tests.service.worlds import World

LIST = "/api/v1/suspensions?status=undoable"


async def test_offer_is_listed_apart_and_taken_once(world: World) -> None:
    offer = await offer_undo(world.wiring)
    assert (await offer_undo(world.wiring)).id == offer.id, "a call has one offer"
    place = f"/api/v1/suspensions/{offer.id}/items/i1/decision"
    async with world.client("anna") as client:
        (listed,) = (await client.get(LIST)).json()["suspensions"]
        (item,) = listed["items"]
        assert (listed["id"], item["tool"]["name"], item["allowed"]) == (offer.id, "refund:undo", ["approve", "deny"])
        assert (item["reverses"]["tool"], item["reverses"]["call_id"]) == ("refund", "c5")
        waiting = (await client.get("/api/v1/suspensions")).json()["suspensions"]
        assert offer.id not in [each["id"] for each in waiting], "nothing waits for it"
        taken = await client.post(place, json={"action": "approve", "digest": item["digest"]})
        assert (taken.status_code, taken.json()["outcome"]["verdict"]) == (200, "approved")
        edited = await client.post(place, json={"action": "approve", "digest": item["digest"], "args": {}})
        assert edited.status_code == 409
        assert (await client.get(LIST)).json()["suspensions"] == []
    async with world.client("root") as client:
        again = await client.post(place, json={"action": "approve", "digest": item["digest"]})
        assert (again.status_code, "anna" in again.text) == (409, True)


async def test_agents_neither_see_nor_cancel_offers(world: World) -> None:
    offer = await offer_undo(world.wiring)
    async with world.client("demo") as client:
        assert (await client.get(LIST)).json()["suspensions"] == []
        assert (await client.get(f"/api/v1/suspensions/{offer.id}")).status_code == 404
        assert (await client.post(f"/api/v1/runs/{offer.run.id}/cancel", json={})).status_code == 404


async def test_only_reviewers_of_the_rule_undo(world: World) -> None:
    offer = await offer_undo(world.wiring, reviewers=("ben",))
    body = {"action": "approve", "digest": offer.items[0].digest}
    async with world.client("anna") as client:
        refused = await client.post(f"/api/v1/suspensions/{offer.id}/items/i1/decision", json=body)
        assert refused.status_code == 403


async def test_two_pages_pressed_at_the_same_time_undo_once(settings: Settings) -> None:
    async with visit(settings) as anna, visit(settings, "ben") as ben:
        offer = await offer_undo(anna.wiring)
        form = {"csrf": CSRF, "digest": offer.items[0].digest}

        def press(who: Visit) -> Coroutine[Any, Any, Response]:
            return who.client.post(f"/undo/{offer.id}", data=form, headers=OWN)

        answers = await asyncio.gather(press(anna), press(ben))
        assert sorted(answer.status_code for answer in answers) == [303, 409]
        (decision,) = (await anna.wiring.desk.suspensions.read(offer.id)).record.items[0].decisions
        (refused,) = (answer.text for answer in answers if answer.status_code == 409)
        assert f"{decision.by.id} approved this" in refused
        again = await asyncio.gather(*(press(anna if decision.by.id == "anna" else ben) for _ in range(2)))
        assert [answer.status_code for answer in again] == [303, 303], "the same form again"
        assert len((await anna.wiring.desk.suspensions.read(offer.id)).record.items[0].decisions) == 1
