"""What waits and how it is decided, over HTTP: seen by those who may, bound to what was seen, won by one."""

import asyncio
from typing import Any

import pytest
from httpx import Response

from sayso.clock import iso_utc
from sayso.records.events import find_break
from sayso.records.items import ItemKind
from sayso.records.suspensions import SuspensionRecord
from sayso.records.terms import EscalationStep, Fallback, Quorum, RuleTerms
from tests.builders import approve, ask, finish, make_pending, make_person
from tests.service.worlds import World, waiting


def place(record: SuspensionRecord, item: int = 0) -> str:
    return f"/api/v1/suspensions/{record.id}/items/{record.items[item].item_id}/decision"


async def send(
    world: World, record: SuspensionRecord, *, by: str = "anna", item: int = 0, key: str | None = None, **word: Any
) -> Response:
    body = {"digest": record.items[item].digest, **word}
    async with world.client(by) as client:
        return await client.post(
            place(record, item), json=body, headers={"Idempotency-Key": key} if key is not None else {}
        )


async def test_a_suspension_shows_all_that_a_reviewer_has_to_know(world: World) -> None:
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


async def test_approving_decides_the_item_and_makes_the_run_ready(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", message="Fine.")
    told = answer.json()
    assert answer.status_code == 200
    assert (told["suspension_id"], told["item_id"], told["status"]) == (record.id, "i1", "decided")
    assert told["outcome"]["verdict"] == "approved"
    assert told["outcome"]["args"] is None
    assert told["decision"]["by"] == {"id": "anna", "kind": "human", "channel": "api"}
    assert told["decision"]["message"] == "Fine."
    assert [one.id for one in await world.wiring.schedule.take(1)] == [record.id]


async def test_edited_arguments_are_what_will_run(world: World) -> None:
    record = await make_pending(world.wiring)
    told = (await send(world, record, action="approve", args={"order": "A-1", "amount": 100})).json()
    assert told["outcome"]["args"] == {"order": "A-1", "amount": 100}
    assert told["outcome"]["digest"] != record.items[0].digest


async def test_a_denial_carries_its_reason(world: World) -> None:
    record = await make_pending(world.wiring)
    told = (await send(world, record, action="deny", message="Never delivered.")).json()
    assert (told["outcome"]["verdict"], told["outcome"]["message"]) == ("denied", "Never delivered.")


async def test_a_value_goes_into_its_argument(world: World) -> None:
    record = await make_pending(world.wiring, ask(kind=ItemKind.INPUT))
    told = (await send(world, record, action="value", value=80)).json()
    assert (told["outcome"]["verdict"], told["outcome"]["value"]) == ("answered", 80)
    assert told["outcome"]["args"] == {"order": "A-1", "amount": 80}


async def test_of_several_items_the_last_decides_the_suspension(world: World) -> None:
    record = await make_pending(world.wiring, ask(0), ask(1))
    first = (await send(world, record, action="approve")).json()
    second = (await send(world, record, action="deny", item=1)).json()
    assert (first["status"], second["status"]) == ("pending", "decided")


async def test_while_the_quorum_is_not_met_the_item_has_no_outcome(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    record = await make_pending(world.wiring, ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    first = (await send(world, record, action="approve")).json()
    again = await send(world, record, action="approve")
    second = (await send(world, record, action="approve", by="ben")).json()
    assert (first["outcome"], first["decision"]["by"]["id"], first["status"]) == (None, "anna", "pending")
    assert (again.status_code, again.json()["decided_by"]) == (409, "anna")
    assert (second["outcome"]["verdict"], second["decision"]["by"]["id"]) == ("approved", "ben")


async def test_of_50_concurrent_deciders_one_wins_and_49_are_told_who(world: World) -> None:
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
    assert {(told["type"], told["decided_by"], told["verdict"], told["decided_at"]) for told in lost} == {
        ("/problems/already-decided", winner, won[0]["outcome"]["verdict"], won[0]["outcome"]["at"])
    }
    assert all(told["detail"].startswith(f"{winner} ") for told in lost)
    trail = await world.wiring.runs.trail(record.run.id)
    assert [entry.type for entry in trail] == ["run_paused", "decision_recorded", "decided"]
    assert find_break(trail) is None


async def test_the_same_decision_with_the_same_key_is_answered_alike_and_counts_once(world: World) -> None:
    record = await make_pending(world.wiring)
    first = await send(world, record, action="approve", key="k-1")
    again = await send(world, record, action="approve", key="k-1")
    other = await send(world, record, action="deny", key="k-1")
    assert (first.status_code, again.status_code, other.status_code) == (200, 200, 409)
    assert first.json() == again.json()
    assert other.json()["type"] == "/problems/idempotency-conflict"
    assert len(await world.wiring.runs.trail(record.run.id)) == 3


async def test_more_time_is_given_once_however_often_it_is_asked_for_under_its_key(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=RuleTerms(timeout_s=300, extend_by_s=600)))
    later = {"until": iso_utc(record.items[0].terms.extend_until_ms)}
    path = f"/api/v1/suspensions/{record.id}/items/i1/extend"
    async with world.client("anna") as client:
        answers = [await client.post(path, json=later, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
        other = await client.post(path, json={"until": "2026-11-21T12:00:00Z"}, headers={"Idempotency-Key": "k1"})
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert other.status_code == 409


async def test_one_key_does_not_serve_for_two_items(world: World) -> None:
    record = await make_pending(world.wiring, ask(0), ask(1))
    assert (await send(world, record, action="approve", key="k-1")).status_code == 200
    assert (await send(world, record, action="approve", item=1, key="k-1")).status_code == 409


async def test_a_decision_on_something_else_than_what_is_asked_is_refused(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", digest="0" * 64)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/stale-digest")
    assert answer.json()["digest"] == record.items[0].digest


async def test_a_decision_after_the_deadline_is_refused_even_though_no_clock_runs(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=RuleTerms(timeout_s=300)), late_ms=299_999)
    while await world.wiring.schedule.now_ms() < record.items[0].terms.deadline_at_ms:
        pass
    answer = await send(world, record, action="approve")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/deadline-passed")
    assert answer.json()["deadline_at"].endswith("Z")
    async with world.client("anna") as client:
        (item,) = (await client.get(f"/api/v1/suspensions/{record.id}")).json()["items"]
    assert (item["outcome"]["verdict"], item["outcome"]["by"]["id"]) == ("denied", "timeout")


async def test_the_rules_are_asked_about_the_final_arguments(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", args={"order": "A-1", "amount": 501})
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/policy-forbids")
    assert answer.json()["policy_id"] == "too-much"


async def test_arguments_that_do_not_fit_the_tool_are_refused_with_the_place(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, action="approve", args={"order": 7, "amount": 100})
    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json()["errors"]] == ["$.args.order"]


async def test_whoever_asked_cannot_decide(world: World) -> None:
    record = await make_pending(world.wiring, owner="anna")
    answer = await send(world, record, action="approve")
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/self-approval")


async def test_an_agent_never_decides_not_even_on_a_suspension_that_is_not_there(world: World) -> None:
    record = await make_pending(world.wiring)
    answer = await send(world, record, by="demo", action="approve")
    nowhere = await send(world, record.model_copy(update={"id": "sus_0"}), by="demo", action="approve")
    assert (answer.status_code, nowhere.status_code) == (403, 403)
    assert answer.json() == nowhere.json()


async def test_an_item_that_is_not_there_is_said_not_to_be(world: World) -> None:
    record = await make_pending(world.wiring)
    async with world.client("anna") as client:
        answer = await client.post(
            f"/api/v1/suspensions/{record.id}/items/i9/decision",
            json={"action": "approve", "digest": record.items[0].digest},
        )
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


async def test_a_long_poll_answers_as_soon_as_the_item_is_decided(world: World) -> None:
    record = await make_pending(world.wiring)
    async with world.client("demo") as client:
        poll = asyncio.create_task(client.get(f"/api/v1/suspensions/{record.id}?wait=60s"))
        await waiting(world, record.id)
        await approve(world.wiring, record)
        shown = (await asyncio.wait_for(poll, 10)).json()
    assert shown["status"] == "decided"
    assert shown["items"][0]["outcome"]["by"]["id"] == "anna"


async def test_pending_ones_are_listed_by_deadline_and_decided_ones_the_latest_first(world: World) -> None:
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
        empty = {"suspensions": [], "next_skip": None, "unreadable": []}
        assert (await client.get("/api/v1/suspensions")).json() == empty
    assert [one["id"] for one in decided["suspensions"] + rest["suspensions"]] == [sooner.id, later.id]
    assert (decided["next_skip"], rest["next_skip"]) == (1, None)


@pytest.mark.parametrize("status", ["pending", "decided"])
async def test_an_agent_lists_its_own_alone_in_whole_pages(world: World, status: str) -> None:
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


async def test_an_agent_finds_its_own_by_their_deadlines_among_few_and_among_very_many(world: World) -> None:
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
