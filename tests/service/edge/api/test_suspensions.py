"""Suspensions over HTTP: who sees them, and how one decision wins."""

import asyncio
from typing import Any

import pytest
from httpx import Response

from sayso.core.clock import iso_utc
from sayso.core.records.chain import find_break
from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import EscalationStep, Fallback, Quorum, RuleTerms
from tests.builders import approve, ask, finish, make_pending, make_person
from tests.service.worlds import World, waiting


def place(record: SuspensionRecord, item: int = 0) -> str:
    return f"/api/v1/suspensions/{record.id}/items/{record.items[item].item_id}/decision"


async def send(
    world: World, record: SuspensionRecord, *, by: str = "anna", item: int = 0, key: str | None = None, **fields: Any
) -> Response:
    body = {"digest": record.items[item].digest, **fields}
    async with world.client(by) as client:
        return await client.post(
            place(record, item), json=body, headers={"Idempotency-Key": key} if key is not None else {}
        )


async def test_suspension_shows_what_reviewers_need(world: World) -> None:
    terms = RuleTerms(
        reviewers=("anna", "ben"),
        quorum=Quorum(approve=2),
        timeout_s=600,
        remind_after_s=(60,),
        escalate=(EscalationStep(after_s=300, reviewers=("carla",)),),
        fallback=Fallback(message="Too late."),
    )
    record = await make_pending(world.wiring, ask(terms=terms))
    async with world.client("anna") as client:
        shown = (await client.get(f"/api/v1/suspensions/{record.id}")).json()
    (item,) = shown["items"]
    assert shown["status"] == "pending"
    assert shown["run"]["claimed_title"] == "A refund"
    assert shown["deadline_at"] == item["terms"]["deadline_at"]
    assert item["digest"] == record.items[0].digest
    assert item["tool"]["args"] == {"order": "A-1", "amount": 250.5}
    assert item["allowed"] == ["approve", "edit", "deny"]
    assert item["terms"]["reviewers"] == ["anna", "ben"]
    assert item["terms"]["quorum"] == {"approve": 2, "deny": 1}
    assert item["terms"]["fallback"] == {"action": "deny", "value": None, "message": "Too late."}
    assert item["terms"]["escalate"] == [{"after_s": 300, "reviewers": ["carla"]}]
    assert len(item["terms"]["remind_at"]) == 1
    assert not [name for name in (*shown, *item, *item["terms"], *shown["run"]) if name.endswith("_ms")]
    assert not {"tenant", "state", "journal"} & set(shown)


async def test_approval_decides_the_item_and_enqueues_the_run(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", message="Fine.")
    decided = answer.json()
    assert answer.status_code == 200
    assert (decided["suspension_id"], decided["item_id"], decided["status"]) == (record.id, "i1", "decided")
    assert decided["outcome"]["verdict"] == "approved"
    assert decided["outcome"]["args"] is None
    assert decided["decision"]["by"] == {"id": "anna", "kind": "human", "channel": "api"}
    assert decided["decision"]["message"] == "Fine."
    assert decided["decision"]["shown"] is None
    assert [one.id for one in await world.wiring.schedule.take(1)] == [record.id]


async def test_edited_arguments_are_the_outcome(world: World) -> None:
    record = await make_pending(world.wiring)
    decided = (await send(world, record, action="approve", args={"order": "A-1", "amount": 100})).json()
    assert decided["outcome"]["args"] == {"order": "A-1", "amount": 100}
    assert decided["outcome"]["digest"] != record.items[0].digest


async def test_denial_has_its_message(world: World) -> None:
    record = await make_pending(world.wiring)
    decided = (await send(world, record, action="deny", message="Never delivered.")).json()
    assert (decided["outcome"]["verdict"], decided["outcome"]["message"]) == ("denied", "Never delivered.")


async def test_value_fills_its_argument(world: World) -> None:
    record = await make_pending(world.wiring, ask(kind=ItemKind.INPUT))
    decided = (await send(world, record, action="value", value=80)).json()
    assert (decided["outcome"]["verdict"], decided["outcome"]["value"]) == ("answered", 80)
    assert decided["outcome"]["args"] == {"order": "A-1", "amount": 80}


async def test_last_item_decides_the_suspension(world: World) -> None:
    record = await make_pending(world.wiring, ask(0), ask(1))
    first = (await send(world, record, action="approve")).json()
    second = (await send(world, record, action="deny", item=1)).json()
    assert (first["status"], second["status"]) == ("pending", "decided")


async def test_item_has_no_outcome_until_its_quorum(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    record = await make_pending(world.wiring, ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    first = (await send(world, record, action="approve")).json()
    again = await send(world, record, action="approve")
    second = (await send(world, record, action="approve", by="ben")).json()
    assert (first["outcome"], first["decision"]["by"]["id"], first["status"]) == (None, "anna", "pending")
    assert (again.status_code, again.json()["decided_by"]) == (409, "anna")
    assert (second["outcome"]["verdict"], second["decision"]["by"]["id"]) == ("approved", "ben")


async def test_one_of_50_concurrent_decisions_wins(world: World) -> None:
    names = [f"reviewer-{number}" for number in range(50)]
    for name in names:
        world.tokens[name] = await make_person(world.wiring, name)
    record = await make_pending(world.wiring)
    answers = await asyncio.gather(
        *(
            send(world, record, by=name, action="approve" if place % 2 else "deny", key="only")
            for place, name in enumerate(names)
        )
    )
    won = [answer.json() for answer in answers if answer.status_code == 200]
    lost = [answer.json() for answer in answers if answer.status_code == 409]
    assert (len(won), len(lost)) == (1, 49)
    winner = won[0]["decision"]["by"]["id"]
    facts = {(problem["type"], problem["decided_by"], problem["verdict"], problem["decided_at"]) for problem in lost}
    assert facts == {("/problems/already-decided", winner, won[0]["outcome"]["verdict"], won[0]["outcome"]["at"])}
    assert all(problem["detail"].startswith(f"{winner} ") for problem in lost)
    trail = await world.wiring.runs.trail(record.run.id)
    assert [entry.type for entry in trail] == ["run_paused", "decision_recorded", "decided"]
    assert find_break(trail) is None


async def test_repeated_decision_counts_once(world: World) -> None:
    record = await make_pending(world.wiring)
    first = await send(world, record, action="approve", key="k-1")
    again = await send(world, record, action="approve", key="k-1")
    other = await send(world, record, action="deny", key="k-1")
    assert (first.status_code, again.status_code, other.status_code) == (200, 200, 409)
    assert first.json() == again.json()
    assert other.json()["type"] == "/problems/idempotency-conflict"
    assert len(await world.wiring.runs.trail(record.run.id)) == 3


async def test_extend_item_is_idempotent(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=RuleTerms(timeout_s=300, extend_by_s=600)))
    later = {"until": iso_utc(record.items[0].terms.extend_until_ms)}
    path = f"/api/v1/suspensions/{record.id}/items/i1/extend"
    async with world.client("anna") as client:
        answers = [await client.post(path, json=later, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
        other = await client.post(path, json={"until": "2026-11-21T12:00:00Z"}, headers={"Idempotency-Key": "k1"})
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert other.status_code == 409


async def test_one_key_cannot_decide_two_items(world: World) -> None:
    record = await make_pending(world.wiring, ask(0), ask(1))
    assert (await send(world, record, action="approve", key="k-1")).status_code == 200
    assert (await send(world, record, action="approve", item=1, key="k-1")).status_code == 409


async def test_decision_with_a_stale_digest_is_refused(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", digest="0" * 64)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/stale-digest")
    assert answer.json()["digest"] == record.items[0].digest


async def test_decision_after_the_deadline_is_refused_without_a_clock(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=RuleTerms(timeout_s=300)), late_ms=299_999)
    while await world.wiring.schedule.now_ms() < record.items[0].terms.deadline_at_ms:
        pass
    answer = await send(world, record, action="approve")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/deadline-passed")
    assert answer.json()["deadline_at"].endswith("Z")
    async with world.client("anna") as client:
        (item,) = (await client.get(f"/api/v1/suspensions/{record.id}")).json()["items"]
    assert (item["outcome"]["verdict"], item["outcome"]["by"]["id"]) == ("denied", "timeout")


async def test_rules_are_evaluated_on_final_arguments(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", args={"order": "A-1", "amount": 501})
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/policy-forbids")
    assert answer.json()["policy_id"] == "too-much"


async def test_arguments_outside_the_schema_are_refused_with_their_path(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", args={"order": 7, "amount": 100})
    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json()["errors"]] == ["$.args.order"]


async def test_owner_cannot_decide(world: World) -> None:
    record = await make_pending(world.wiring, owner="anna")
    answer = await send(world, record, action="approve")
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/self-approval")


async def test_agent_never_decides_even_on_a_missing_suspension(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, by="demo", action="approve")
    nowhere = await send(world, record.model_copy(update={"id": "sus_0"}), by="demo", action="approve")
    assert (answer.status_code, nowhere.status_code) == (403, 403)
    assert answer.json() == nowhere.json()


async def test_missing_item_is_not_found(world: World) -> None:
    record = await make_pending(world.wiring)
    async with world.client("anna") as client:
        answer = await client.post(
            f"/api/v1/suspensions/{record.id}/items/i9/decision",
            json={"action": "approve", "digest": record.items[0].digest},
        )
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


async def test_long_poll_returns_when_the_item_is_decided(world: World) -> None:
    record = await make_pending(world.wiring)
    async with world.client("demo") as client:
        poll = asyncio.create_task(client.get(f"/api/v1/suspensions/{record.id}?wait=60s"))
        await waiting(world, record.id)
        await approve(world.wiring, record)
        shown = (await asyncio.wait_for(poll, 10)).json()
    assert shown["status"] == "decided"
    assert shown["items"][0]["outcome"]["by"]["id"] == "anna"


async def test_lists_pending_by_deadline_and_decided_latest_first(world: World) -> None:
    later = await make_pending(world.wiring, ask(terms=RuleTerms(timeout_s=900)))
    sooner = await make_pending(world.wiring, ask(terms=RuleTerms(timeout_s=100)))
    async with world.client("anna") as client:
        pending = (await client.get("/api/v1/suspensions")).json()
        assert [one["id"] for one in pending["suspensions"]] == [sooner.id, later.id]
        first = await approve(world.wiring, later)
        while await world.wiring.schedule.now_ms() <= first.updated_at_ms + 200:
            continue  # nothing orders what is decided at about the same time: a record may take it for 200 ms earlier
        await finish(world.wiring, await approve(world.wiring, sooner))
        decided = (await client.get("/api/v1/suspensions?status=decided&limit=1")).json()
        rest = (await client.get("/api/v1/suspensions?status=decided&limit=1&skip=1")).json()
        empty: dict[str, Any] = {"suspensions": [], "next_skip": None, "unreadable": []}
        assert (await client.get("/api/v1/suspensions")).json() == empty
    assert [one["id"] for one in decided["suspensions"] + rest["suspensions"]] == [sooner.id, later.id]
    assert (decided["next_skip"], rest["next_skip"]) == (1, None)


@pytest.mark.parametrize("status", ["pending", "decided"])
async def test_agent_lists_its_own_suspensions_in_full_pages(world: World, status: str) -> None:
    own = [await make_pending(world.wiring, owner="demo") for _ in range(3)]
    foreign = [await make_pending(world.wiring, owner="other") for _ in range(2)]
    if status == "decided":
        for record in [*own, *foreign]:
            await approve(world.wiring, record)
    async with world.client("demo") as client:
        first = (await client.get(f"/api/v1/suspensions?status={status}&limit=2")).json()
        rest = (await client.get(f"/api/v1/suspensions?status={status}&limit=2&skip=2")).json()
        assert (await client.get(f"/api/v1/suspensions/{foreign[0].id}")).status_code == 404
    shown = [one["id"] for one in first["suspensions"] + rest["suspensions"]]
    assert sorted(shown) == sorted(record.id for record in own)
    assert (first["next_skip"], rest["next_skip"]) == (2, None)


async def test_agent_lists_its_own_among_few_and_among_many(world: World) -> None:
    own = [await make_pending(world.wiring, late_ms=late_ms) for late_ms in (0, 2_000, 1_000)]
    wanted = [own[place].id for place in (1, 2, 0)]
    await approve(world.wiring, await make_pending(world.wiring))
    found = []
    async with world.client("demo") as client:
        for others in (5, 500):
            await asyncio.gather(*(make_pending(world.wiring, owner="other") for _ in range(others)))
            first = (await client.get("/api/v1/suspensions?limit=2")).json()
            second = (await client.get("/api/v1/suspensions?limit=2&skip=2")).json()
            found.append([one["id"] for page in (first, second) for one in page["suspensions"]])
            assert (first["next_skip"], second["next_skip"]) == (2, None)
    assert found == [wanted, wanted]


async def test_page_of_very_large_calls_is_short_and_leads_to_the_others(world: World) -> None:
    one = ask()
    tool = one.tool.model_copy(update={"args": {"text": "x" * 1_500_000}})
    records = [await make_pending(world.wiring, one.model_copy(update={"tool": tool})) for _ in range(4)]
    found: list[str] = []
    sizes: list[int] = []
    skip: int | None = 0
    async with world.client("anna") as client:
        while skip is not None:
            page = (await client.get(f"/api/v1/suspensions?limit=10&skip={skip}")).json()
            sizes.append(len(page["suspensions"]))
            found += [suspension["id"] for suspension in page["suspensions"]]
            skip = page["next_skip"]
    assert sizes == [2, 2]
    assert sorted(found) == sorted(record.id for record in records)
