"""Calls of a run that is driven elsewhere, over HTTP: evaluated, suspended, decided."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import Response

from tests.service.worlds import World, read_store

REFUND = {"tool": "refund", "args": {"order": "A-1", "amount": 250.5}, "call_id": "c1"}


async def ask(world: World, *calls: dict[str, Any], key: str | None = None, **fields: Any) -> Response:
    async with world.client("demo") as client:
        return await client.post(
            "/api/v1/suspensions",
            json={"agent": "demo", "calls": list(calls), **fields},
            headers={"Idempotency-Key": key} if key else {},
        )


async def test_call_that_needs_approval_is_pending(world: World) -> None:
    answer = await ask(world, REFUND, title="Pay back")
    assert answer.status_code == 201
    suspension = answer.json()
    assert answer.headers["Location"] == f"/api/v1/suspensions/{suspension['id']}"
    (item,) = suspension["items"]
    assert (suspension["status"], item["tool"]["args"], item["call_id"]) == ("pending", REFUND["args"], "c1")
    async with world.client("anna") as reviewer:
        waiting = (await reviewer.get("/api/v1/suspensions")).json()["suspensions"]
    assert [one["id"] for one in waiting] == [suspension["id"]]


async def test_denied_call_is_decided_immediately(world: World) -> None:
    suspension = (await ask(world, {"tool": "refund", "args": {"order": "A-1", "amount": 600}})).json()
    assert suspension["status"] == "decided"
    outcome = suspension["items"][0]["outcome"]
    assert (outcome["verdict"], outcome["by"]["kind"]) == ("denied", "policy")
    trail = await world.wiring.runs.trail(suspension["run"]["id"])
    assert [one.type for one in trail] == ["tool_batch_started", "policy_decision", "run_paused", "decided"]
    started, judged, *_ = (one.data for one in trail)
    assert (started["agent"], started["owner"]) == (suspension["run"]["agent"], suspension["run"]["owner"])
    assert judged["args"] == {"order": "A-1", "amount": 600}
    assert judged["rule_version"] == suspension["items"][0]["terms"]["rule_version"]


async def test_denied_call_does_not_block_other_items(world: World) -> None:
    suspension = (await ask(world, {"tool": "refund", "args": {"order": "A-1", "amount": 600}}, REFUND)).json()
    assert suspension["status"] == "pending"
    assert [item["outcome"] is None for item in suspension["items"]] == [False, True]


async def test_repeated_request_creates_one_suspension(world: World) -> None:
    first, again = await ask(world, REFUND, key="k1"), await ask(world, REFUND, key="k1")
    assert first.json()["id"] == again.json()["id"]
    assert (await ask(world, REFUND, REFUND, key="k1")).status_code == 409


@pytest.mark.parametrize(
    ("call", "detail"),
    [
        ({"tool": "transfer", "args": {}}, "has no tool 'transfer'"),
        ({"tool": "refund", "args": {"order": "A-1"}}, "required property"),
        ({"tool": "refund", "args": {"order": 1, "amount": 2}}, "calls[0].args.order"),
        ({"tool": "refund", "args": {"order": "A-1", "amount": 2, "more": 3}}, "more"),
        ({"args": {}}, "$.calls[0].tool is missing"),
    ],
)
async def test_invalid_call_is_refused_before_suspending(
    world: World, clean_store_url: str, call: dict[str, Any], detail: str
) -> None:
    before = await read_store(clean_store_url)
    answer = await ask(world, call)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]
    assert await read_store(clean_store_url) == before


OWN = {"tool": "refund", "args": {"order": "A-1"}, "definition": {"description": "Pay back."}}


async def own(world: World, *calls: dict[str, Any], key: str | None = None, **fields: Any) -> Response:
    async with world.client("demo") as client:
        body = {"mode": "poll", "calls": list(calls), **fields}
        return await client.post("/api/v1/suspensions", json=body, headers={"Idempotency-Key": key} if key else {})


@pytest.mark.parametrize("name", ["send email", "send_email ", "\u0455end_email", "send_e\u200bmail"])
async def test_invalid_tool_name_is_refused(world: World, name: str) -> None:
    answer = await own(world, {**OWN, "tool": name})
    assert answer.status_code == 422
    assert "$.calls[0].tool has a character that no tool's name may have; rename the tool" in answer.json()["detail"]


async def test_similar_tool_name_is_denied_by_the_rule(world: World) -> None:
    denied = (await own(world, {**OWN, "tool": "Re-Fund", "args": {"amount": 600}})).json()
    assert (denied["items"][0]["outcome"]["verdict"], denied["items"][0]["terms"]["rule_id"]) == ("denied", "too-much")


async def test_similar_tool_name_is_flagged(world: World) -> None:
    (item,) = (await own(world, {**OWN, "tool": "Re-Fund", "args": {"amount": 5}})).json()["items"]
    assert item["resembles"] == ["refund"]
    suspension = (await own(world, OWN)).json()
    assert suspension["items"][0]["resembles"] == []


async def test_question_in_an_external_definition_needs_approval(world: World) -> None:
    drafts = {"type": "object", "x-sayso-question": {"question": "note", "answer": "colour"}}
    call = {"tool": "transfer", "args": {"note": "Which colour?", "amount": 5000}, "definition": {"parameters": drafts}}
    (item,) = (await own(world, call)).json()["items"]
    assert (item["kind"], item["target_arg"], item["prompt"]["title"]) == ("approval", None, None)
    async with world.client("anna") as reviewer:
        path = f"/api/v1/suspensions/{(await own(world, call)).json()['id']}/items/i1/decision"
        answered = await reviewer.post(path, json={"action": "value", "value": "blue", "digest": item["digest"]})
    assert answered.status_code in (409, 422)


async def test_calls_are_denied_once_their_answer_no_longer_counts(world: World) -> None:
    until = datetime.fromtimestamp(await world.wiring.schedule.now_ms() / 1000 + 90, UTC)
    (item,) = (await own(world, OWN, expires_at=until.isoformat())).json()["items"]
    terms = item["terms"]
    late = until - datetime.fromisoformat(terms["deadline_at"])
    assert timedelta(0) <= late <= timedelta(seconds=5)
    assert (terms["extend_until"], terms["fallback"]["action"]) == (None, "deny")


async def test_expiry_that_has_passed_is_refused(world: World) -> None:
    refused = await own(world, OWN, expires_at="2020-01-01T00:00:00Z")
    assert (refused.status_code, refused.json()["detail"]) == (422, "expires_at has passed. Ask with a later time.")


async def test_turns_of_a_thread_are_counted_per_owner(world: World) -> None:
    steps = [(await own(world, OWN, thread_id="t1", key=key)).json()["step"] for key in ("a", "b", "a", "c")]
    assert steps == [1, 2, 1, 3]
    assert (await own(world, OWN, thread_id="t2")).json()["step"] == 1
    assert (await ask(world, REFUND, thread_id="t1")).json()["step"] == 4
    assert [(await own(world, OWN)).json()["step"] for _ in range(2)] == [1, 1]


async def test_higher_step_from_the_caller_applies(world: World) -> None:
    assert (await own(world, OWN, step=7)).json()["step"] == 7
    assert [(await own(world, OWN, thread_id="t3", step=1)).json()["step"] for _ in range(3)] == [1, 2, 3]
    suspension = (await own(world, OWN, step=9)).json()
    started, *_ = await world.wiring.runs.trail(suspension["run"]["id"])
    assert started.data["step"] == 9
    assert (await own(world, OWN, step=0)).status_code == 422


async def test_step_rule_applies_to_calls_over_the_api(world: World, clean_store_url: str) -> None:
    path = world.wiring.settings.policy
    assert path is not None
    path.write_text("version: 1\ndefault: allow\nrules:\n  - {id: long, when: step > 2, action: deny}\n")
    verdicts = [
        (await own(world, OWN, thread_id="t4", key=str(at))).json()["items"][0]["outcome"]["verdict"] for at in range(3)
    ]
    assert verdicts == ["approved", "approved", "denied"]


async def test_edit_that_cannot_be_evaluated_creates_a_new_item(world: World) -> None:
    path = world.wiring.settings.policy
    assert path is not None
    large = "{id: large, when: args.amount > 9, action: request_approval, terms: {quorum: {approve: 2}}}"
    path.write_text(f"version: 1\ndefault: request_approval\nrules:\n  - {large}\n")
    suspension = (await own(world, {"tool": "transfer", "args": {"amount": 5}, "definition": {}})).json()
    decision = {"action": "approve", "digest": suspension["items"][0]["digest"], "args": {"amount": "5000"}}
    async with world.client("anna") as reviewer:
        edited = await reviewer.post(f"/api/v1/suspensions/{suspension['id']}/items/i1/decision", json=decision)
        assert (edited.status_code, edited.json()["outcome"]) == (200, None)
        (item,) = (await reviewer.get(f"/api/v1/suspensions/{suspension['id']}")).json()["items"]
    assert (item["tool"]["args"], item["terms"]["quorum"]["approve"], item["decisions"]) == ({"amount": "5000"}, 2, [])


PAY: dict[str, Any] = {
    "type": "object",
    "properties": {"account": {"enum": ["savings", "giro"]}, "amount": {"type": "number"}},
    "required": ["account", "amount"],
    "additionalProperties": False,
}


async def pay(world: World, args: dict[str, Any]) -> Response:
    call = {"tool": "pay", "args": args, "definition": {"parameters": PAY}}
    async with world.client("demo") as client:
        return await client.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})


@pytest.mark.parametrize("args", [{"amount": 5}, {"amount": 5, "account": "?"}], ids=["missing", "not yet right"])
async def test_required_argument_may_be_missing_if_a_person_gives_it(world: World, args: dict[str, Any]) -> None:
    answer = await pay(world, args)
    assert answer.status_code == 201, answer.text
    suspension = answer.json()
    (item,) = suspension["items"]
    assert (item["kind"], item["target_arg"]) == ("input", "account")
    path = f"/api/v1/suspensions/{suspension['id']}/items/{item['item_id']}"
    async with world.client("anna") as client:
        decision = {"action": "value", "digest": item["digest"], "value": "nobody's"}
        refused = await client.post(f"{path}/decision", json=decision)
        assert (refused.status_code, '"savings", "giro"' in refused.json()["detail"]) == (422, True)
        assert (await client.post(f"{path}/decision", json={**decision, "value": "giro"})).status_code == 200
    async with world.client("demo") as client:
        spent = await client.post(f"{path}/redeem", headers={"Idempotency-Key": "try-1"})
    assert spent.json()["args"] == {"amount": 5, "account": "giro"}


async def test_other_required_arguments_must_be_present(world: World, clean_store_url: str) -> None:
    before = await read_store(clean_store_url)
    answer = await pay(world, {"account": "giro"})
    assert (answer.status_code, '"amount" is a required property' in answer.json()["detail"]) == (422, True)
    assert await read_store(clean_store_url) == before
