"""AAP requests: they are returned unchanged, rules decide them, and reviewers see them as items."""

import asyncio
import json

import pytest

from sayso.core.canonical_json import MAX_DIGITS
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.envelopes import ChangeRequest
from sayso.errors import InvalidInput
from tests.builders import approve, person
from tests.service.edge.api.aap.clients import InstanceClient, connected, find, suspension_of
from tests.service.worlds import World, waiting

JSON = {"Content-Type": "application/json"}


async def test_submitted_members_are_returned_unchanged(bot: InstanceClient) -> None:
    members = {
        "arguments": '{"i": 1, "f": 1.0, "e": 1e0, "E": 1E+2, "s": "\\u00fc\\ud83d\\ude00 ü", "": {"a": [null]}}',
        "agent_reasoning": '"Because\\u2028"',
        "tool": '"refu\\u006ed"',
        "context": '{"resume": {"id": 9007199254740993, "x": 0.10}, "flag": true}',
        "timeout": '"90s"',
        "server": '"shop"',
    }
    body = "{" + ", ".join(f'"{name}":  {text}' for name, text in members.items()) + "}"
    created = await bot.client.post("/requests", content=body.encode(), headers={**JSON, "Idempotency-Key": "k"})
    assert created.status_code == 201, created.text
    shown = await bot.client.get(f"/requests/{created.json()['id']}")
    for answer in (created.text, shown.text):
        for name, text in members.items():
            assert f'"{name}":{text}' in answer
    assert json.loads(created.text)["tool"] == "refund"


async def test_absent_members_stay_absent_and_empty_ones_empty(bot: InstanceClient) -> None:
    absent = (await bot.ask()).json()
    assert not {"server", "context", "agent_reasoning", "decision", "consumption"} & set(absent)
    empty = (await bot.ask(context={}, agent_reasoning="")).json()
    assert (empty["context"], empty["agent_reasoning"]) == ({}, "")


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ('{"tool": "a", "arguments": {}, "timeout": "1m", "server": null}', "invalid_field", None),
        ('{"tool": "a", "arguments": {}, "timeout": "1m", "more": 1}', "invalid_field", "more"),
        ('{"tool": "a", "arguments": {}, "timeout": "1m", "tool": "b"}', "invalid_json", None),
        ('{"tool": "a", "arguments": {"x": 1, "x": 2}, "timeout": "1m"}', "invalid_json", None),
        ('{"tool": "a", "arguments": {"x": 0.12345678901234567890}, "timeout": "1m"}', "invalid_json", None),
        pytest.param(
            f'{{"tool": "a", "arguments": {{"x": 1{"0" * MAX_DIGITS}}}, "timeout": "1m"}}',
            "invalid_json",
            None,
            id="an integer of too many digits",
        ),
        ('{"tool": "a", "arguments": {"x": NaN}, "timeout": "1m"}', "invalid_json", None),
        ('{"tool": "a", "arguments": {"x": "\\ud800"}, "timeout": "1m"}', "invalid_json", None),
        ('{"tool": "", "arguments": {}, "timeout": "1m"}', "invalid_field", "tool"),
        ('{"tool": "send email", "arguments": {}, "timeout": "1m"}', "invalid_field", "tool"),
        ('{"tool": "send_email\\u200b", "arguments": {}, "timeout": "1m"}', "invalid_field", "tool"),
        ('{"tool": "a", "arguments": [], "timeout": "1m"}', "invalid_field", "arguments"),
        ('{"tool": "a", "arguments": null, "timeout": "1m"}', "invalid_field", "arguments"),
        ('{"tool": "a", "arguments": {}, "timeout": "1m", "more": null}', "invalid_field", "more"),
        ('{"tool": "a", "arguments": {}, "timeout": "0m"}', "invalid_field", "timeout"),
        ('{"tool": "a", "arguments": {}, "timeout": "1d"}', "invalid_field", "timeout"),
        ('{"tool": "a", "arguments": {}, "timeout": 60}', "invalid_field", "timeout"),
        ('{"tool": "a", "arguments": {}}', "invalid_field", "timeout"),
        ("[]", "invalid_field", None),
        ("", "invalid_json", None),
        ("{", "invalid_json", None),
    ],
)
async def test_invalid_member_is_refused_with_its_path(
    world: World, bot: InstanceClient, body: str, code: str, param: str | None
) -> None:
    answer = await bot.client.post("/requests", content=body.encode(), headers={**JSON, "Idempotency-Key": "k"})
    error = answer.json()["error"]
    assert (error["code"], error["type"], error.get("param")) == (code, "invalid_request", param)
    assert answer.status_code == (422 if code == "invalid_field" else 400)
    assert answer.headers["x-request-id"] == error["request_id"]
    assert await world.wiring.runs.inbox() == []


@pytest.mark.parametrize("keys", [[], ["a", "b"], [""], ["x" * 256], ["with blank"]])
async def test_idempotency_key_is_one_visible_header(bot: InstanceClient, keys: list[str]) -> None:
    headers = [("Idempotency-Key", key) for key in keys]
    body = {"tool": "a", "arguments": {}, "timeout": "1m"}
    answer = await bot.client.post("/requests", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request")
    assert answer.json()["error"]["code"].endswith("idempotency_key")


async def test_errors_of_every_layer_use_the_protocols_form(world: World, bot: InstanceClient) -> None:
    request_id = await bot.waiting()
    answers = [
        await bot.client.get("/nothing"),
        await bot.client.put(f"/requests/{request_id}"),
        await bot.client.get(f"/requests/{request_id}?wait=soon"),
        await bot.client.get(f"/requests/{request_id}?more=1"),
        await bot.client.post("/requests", content=b"x" * 300_000, headers={**JSON, "Idempotency-Key": "k"}),
        await bot.client.post(
            "/requests", content=b"{}", headers={"Content-Type": "text/plain", "Idempotency-Key": "k"}
        ),
        await bot.client.get(f"/requests/{request_id}", headers={"Authorization": "Basic x"}),
        await bot.client.post(f"/requests/{request_id}/consume", content=b"{}", headers={"Idempotency-Key": "k"}),
    ]
    assert [answer.status_code for answer in answers] == [404, 405, 400, 422, 400, 400, 401, 422]
    for answer in answers:
        assert set(answer.json()) == {"error"}
        assert {"type", "code", "message", "request_id"} <= set(answer.json()["error"])
        assert answer.headers["x-request-id"] == answer.json()["error"]["request_id"]
    assert answers[6].headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("sent", [{"server": ""}, {"context": []}, {"agent_reasoning": 7}])
async def test_invalid_optional_member_is_named(bot: InstanceClient, sent: dict[str, object]) -> None:
    body = {"tool": "refund", "arguments": {}, "timeout": "1m", **sent}
    answer = await bot.client.post("/requests", json=body, headers={"Idempotency-Key": "k"})
    (name,) = sent
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (422, name)
    assert error["message"].count("$.") == 1, "one fault, named once"


async def test_rules_allow_and_deny_immediately(bot: InstanceClient) -> None:
    allowed = (await bot.ask("look_up")).json()
    assert (allowed["status"], allowed["decision"]["status"]) == ("approved", "approved")
    assert (await bot.consume(allowed["id"])).status_code == 200
    denied = (await bot.ask("refund", {"amount": 501})).json()
    assert (denied["status"], "expires_at" in denied["decision"]) == ("denied", False)


async def test_rule_that_asks_for_a_value_denies(bot: InstanceClient) -> None:
    denied = (await bot.ask("choose", {"which": "a"})).json()
    assert denied["status"] == "denied"
    assert "ask-for-a-value" in denied["decision"]["note"]


async def test_request_for_changes_is_a_denial_that_says_so(world: World, bot: InstanceClient) -> None:
    request_id = await bot.waiting(args={"amount": 5})
    record = await find(world.wiring, request_id)
    changes = ChangeRequest(paths=("args.amount",))
    decision = DecisionRequest(action="deny", digest=record.items[0].digest, message="Less.", changes=changes)
    await world.wiring.desk.decide(record.id, "i1", decision, person("anna"))
    decided = (await bot.show(request_id))["decision"]
    assert decided["status"] == "denied"
    assert decided["note"].startswith("Changes requested (1 of 3): Less. Change args.amount, and call ")


async def test_request_is_an_item_with_approve_and_deny(world: World, bot: InstanceClient) -> None:
    request_id = await bot.waiting(args={"amount": 5}, server="shop", agent_reasoning="They asked.", context={"aap": 1})
    (listed,) = await world.wiring.runs.inbox()
    assert listed == suspension_of(request_id)
    record = await find(world.wiring, request_id)
    assert record.run.agent == "aap/bot"
    assert record.run.facts == {"aap": {"instance_id": bot.id, "provisioner": "platform"}}
    assert record.run.claimed == {"aap": {"server": "shop"}}
    (item,) = record.items
    assert item.allowed == ("approve", "deny")
    edited = DecisionRequest(action="approve", digest=item.digest, args={"amount": 1})
    with pytest.raises(InvalidInput):
        await world.wiring.desk.decide(record.id, "i1", edited, person("anna"))

    async with world.client("anna") as client:
        client.cookies.set("session", world.tokens["anna"])
        seen = await client.get(f"/api/v1/suspensions/{record.id}")
        assert seen.json()["items"][0]["tool"]["args"] == {"amount": 5}
        trail = await world.wiring.runs.trail(record.run.id)
        assert [entry.data["text"] for entry in trail if entry.type == "llm_completed"] == ["They asked."]


async def test_long_poll_returns_when_the_request_is_decided(world: World, bot: InstanceClient) -> None:
    request_id = await bot.waiting()
    polling = asyncio.create_task(bot.show(request_id, wait="9h"))
    await waiting(world, suspension_of(request_id))
    await approve(world.wiring, await find(world.wiring, request_id))
    assert (await polling)["status"] == "approved"


async def test_cancelling_an_approved_run_keeps_the_decision(world: World, bot: InstanceClient) -> None:
    request_id = await bot.waiting()
    record = await find(world.wiring, request_id)
    await approve(world.wiring, record)
    decided = (await bot.show(request_id))["decision"]
    await world.wiring.desk.cancel(record.run.id, person("root"), "Stop")
    shown = await bot.show(request_id)
    assert (shown["status"], shown["decision"]) == ("approved", decided)
    refused = await bot.consume(request_id)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "approval_withdrawn")


async def test_outcome_follows_consumption_and_is_reported_once(world: World, bot: InstanceClient) -> None:
    request_id = (await bot.ask("look_up")).json()["id"]
    early = await bot.client.post(f"/requests/{request_id}/outcome", json={"status": "succeeded"})
    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_consumed")
    await bot.consume(request_id)
    assert (await bot.client.post(f"/requests/{request_id}/outcome", json={"status": "succeeded"})).status_code == 200
    other = await bot.client.post(f"/requests/{request_id}/outcome", json={"status": "failed"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "outcome_conflict")
    odd = await bot.client.post(f"/requests/{request_id}/outcome", json={"status": "maybe"})
    assert odd.status_code == 422
    assert (await find(world.wiring, request_id)).run_status == "completed"


async def test_long_poll_ends_when_its_instance_is_deleted(world: World, bot: InstanceClient, provisioner: str) -> None:
    request_id = await bot.waiting()
    polling = asyncio.create_task(bot.client.get(f"/requests/{request_id}", params={"wait": "30s"}))
    await waiting(world, suspension_of(request_id))
    async with connected(world, provisioner) as client:
        assert (await client.delete(f"/instances/{bot.id}")).status_code == 204
    assert (await polling).status_code == 401
