"""A delegate decides over the API while the reviewer is absent."""

import httpx

from sayso.core.clock import HOUR_MS, now_ms
from sayso.core.records.terms import RuleTerms
from tests.builders import ask, make_pending, make_person
from tests.service.worlds import World


async def decide(world: World, token: str, terms: RuleTerms, owner: str = "demo") -> httpx.Response:
    record = await make_pending(world.wiring, ask(terms=terms), owner=owner)
    item = record.items[0]
    async with world.client(token) as client:
        body = {"action": "approve", "digest": item.digest}
        return await client.post(f"/api/v1/suspensions/{record.id}/items/i1/decision", json=body)


async def test_delegate_decides_for_the_absent_reviewer(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    await world.wiring.groups.create("payments", ("anna",), (), "root")
    await world.wiring.duty.add_absence("anna", now_ms() - 1, now_ms() + HOUR_MS, "ben", "anna")
    by_name = await decide(world, "ben", RuleTerms(reviewers=("anna",)))
    assert by_name.status_code == 200
    assert by_name.json()["outcome"]["by"] == {"id": "ben", "kind": "human", "channel": "api", "for_person": "anna"}
    by_group = await decide(world, "ben", RuleTerms(reviewers=("group:payments",)))
    assert by_group.json()["outcome"]["by"]["groups"] == ["payments"]
    own = await decide(world, "ben", RuleTerms(reviewers=("anna",), no_self_approval=False), owner="ben")
    assert own.status_code == 403


async def test_delegate_decides_only_during_the_absence(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    await world.wiring.duty.add_absence("anna", now_ms() + HOUR_MS, now_ms() + 2 * HOUR_MS, "ben", "anna")
    assert (await decide(world, "ben", RuleTerms(reviewers=("anna",)))).status_code == 403


async def test_delegate_of_a_deactivated_reviewer_decides_nothing(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    await world.wiring.duty.add_absence("anna", now_ms() - 1, now_ms() + HOUR_MS, "ben", "anna")
    await world.wiring.reviewers.deactivate("anna")
    assert (await decide(world, "ben", RuleTerms(reviewers=("anna",)))).status_code == 403
