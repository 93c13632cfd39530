"""Decisions by signed webhook: applied once, from active reviewers with a valid signature."""

import json
from typing import Any

import pytest
from httpx import AsyncClient, Response
from pydantic import SecretStr

from sayso.core.clock import now_ms
from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import Quorum, RuleTerms
from sayso.core.signing import sign_message
from service.core.settings import Settings
from tests.builders import ask, make_pending, make_person
from tests.service.worlds import World, read_store

OLD = "whsec_" + "b2xkb2xk" * 5
NEW = "whsec_" + "bmV3bmV3" * 5


@pytest.fixture
def settings(clean_store_url: str) -> Settings:
    return Settings(redis_url=clean_store_url, webhook_secret=(SecretStr(OLD), SecretStr(NEW)))


def word(record: SuspensionRecord, **fields: Any) -> dict[str, Any]:
    item = record.items[0]
    basics = {"suspension_id": record.id, "item_id": item.item_id, "reviewer": "anna", "action": "approve"}
    return {**basics, "digest": item.digest, **fields}


async def send(
    client: AsyncClient, body: dict[str, Any] | bytes, message_id: str = "msg_1", secret: str = NEW, **headers: str
) -> Response:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    at_s = now_ms() // 1000
    signed = {
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": sign_message(secret, message_id, at_s, raw),
        "Content-Type": "application/json",
    }
    return await client.post("/hooks/decisions", content=raw, headers={**signed, **headers})


@pytest.mark.parametrize("secret", [OLD, NEW])
async def test_webhook_decision_is_recorded_for_the_reviewer(world: World, secret: str) -> None:
    record = await make_pending(world.wiring)
    async with world.client() as client:
        answer = await send(client, word(record, message="Fine."), secret=secret)
    assert answer.status_code == 200
    assert answer.json() == {
        "suspension_id": record.id,
        "item_id": "i1",
        "status": "decided",
        "verdict": "approved",
        "repeated": False,
    }
    decided = (await world.wiring.desk.suspensions.read(record.id)).record
    assert decided is not None
    (decision,) = decided.items[0].decisions
    assert (decision.by.id, decision.by.kind, decision.by.channel) == ("anna", "human", "webhook")
    assert (decision.message, decision.idempotency_key) == ("Fine.", "webhook:msg_1")


@pytest.mark.parametrize(
    ("kind", "fields", "verdict"),
    [
        (ItemKind.APPROVAL, {"args": {"order": "A-1", "amount": 9}}, "approved"),
        (ItemKind.APPROVAL, {"action": "deny", "message": "No."}, "denied"),
        (ItemKind.INPUT, {"action": "value", "value": 9}, "answered"),
    ],
)
async def test_webhook_accepts_every_action(world: World, kind: ItemKind, fields: dict[str, Any], verdict: str) -> None:
    record = await make_pending(world.wiring, ask(kind=kind))
    async with world.client() as client:
        assert (await send(client, word(record, **fields))).json()["verdict"] == verdict


async def test_webhook_repeated_message_changes_nothing(world: World, clean_store_url: str) -> None:
    record = await make_pending(world.wiring)
    async with world.client() as client:
        first = await send(client, word(record))
        before = await read_store(clean_store_url)
        again = await send(client, word(record))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == {**first.json(), "repeated": True}
    assert await read_store(clean_store_url) == before


@pytest.mark.parametrize("fields", [{"reviewer": "root"}, {"action": "deny"}, {"message": "x"}, {"item_id": "i2"}])
async def test_webhook_reused_id_with_another_body_is_refused(world: World, fields: dict[str, Any]) -> None:
    record = await make_pending(world.wiring, ask(0, terms=RuleTerms(quorum=Quorum(approve=2))), ask(1))
    async with world.client() as client:
        await send(client, word(record))
        other = await send(client, word(record, **fields))
    assert (other.status_code, other.json()["type"]) == (409, "/problems/idempotency-conflict")
    assert other.json()["detail"].startswith("This webhook-id was used with another body")


async def test_webhook_second_decision_is_already_decided(world: World) -> None:
    record = await make_pending(world.wiring)
    async with world.client() as client:
        await send(client, word(record), "msg_1")
        answer = await send(client, word(record, reviewer="root"), "msg_2")
    assert (answer.status_code, answer.json()["decided_by"]) == (409, "anna")


async def test_webhook_requires_an_active_reviewer(world: World, clean_store_url: str) -> None:
    await make_person(world.wiring, "gone")
    await world.wiring.reviewers.deactivate("gone")
    record = await make_pending(world.wiring)
    before = await read_store(clean_store_url)
    async with world.client() as client:
        for name in ("gone", "nobody", "demo"):
            answer = await send(client, word(record, reviewer=name))
            assert (answer.status_code, answer.json()["type"]) == (403, "/problems/not-allowed")
    assert await read_store(clean_store_url) == before


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"webhook-id": "msg_2"}, "does not verify"),
        ({"webhook-signature": "v1,AAAA"}, "does not verify"),
        ({"webhook-signature": ""}, "webhook-signature"),
        ({"webhook-timestamp": "1"}, "more than 300 s from now"),
        ({"webhook-timestamp": "now"}, "webhook-timestamp"),
        ({"webhook-id": "msg 1"}, "webhook-id"),
    ],
)
async def test_webhook_without_a_valid_signature_is_refused_unread(
    world: World, clean_store_url: str, headers: dict[str, str], says: str
) -> None:
    record = await make_pending(world.wiring)
    before = await read_store(clean_store_url)
    async with world.client() as client:
        for body in (word(record), b"{{{"):
            answer = await send(client, body, **headers)
            assert (answer.status_code, answer.json()["type"]) == (401, "/problems/invalid-signature")
            assert says in answer.json()["detail"]
    assert await read_store(clean_store_url) == before


async def test_webhook_duplicate_header_is_refused(world: World) -> None:
    record = await make_pending(world.wiring)
    raw = json.dumps(word(record)).encode()
    at_s = now_ms() // 1000
    signature = sign_message(NEW, "msg_1", at_s, raw)
    headers = [("webhook-id", "msg_1"), ("webhook-timestamp", str(at_s)), ("webhook-signature", signature)]
    async with world.client() as client:
        for name, value in headers:
            answer = await client.post("/hooks/decisions", content=raw, headers=[*headers, (name, value)])
            assert answer.status_code == 401
            assert name in answer.json()["detail"]
        assert (await client.post("/hooks/decisions", content=raw, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda raw: b"{{{", 400),
        (lambda raw: raw[:-1] + b',"reviewer":"root"}', 400),
        (lambda raw: raw[:-1] + b',"by":"root"}', 422),
        (lambda raw: b"[]", 422),
        (lambda raw: raw.replace(b'"approve"', b'"allow"'), 422),
        (lambda raw: raw.replace(b'"anna"', b"7"), 422),
        (lambda raw: raw.replace(b'"anna"', b'"\\ud800"'), 400),
        (lambda raw: raw.replace(b'"i1"', b'"i9"'), 404),
        (lambda raw: raw.replace(b'"sus_', b'"sus_0'), 404),
        (lambda raw: b"[" * 200_000, 413),
    ],
)
async def test_webhook_signed_but_invalid_decision_is_refused(
    world: World, clean_store_url: str, change: Any, status: int
) -> None:
    record = await make_pending(world.wiring)
    before = await read_store(clean_store_url)
    async with world.client() as client:
        answer = await send(client, change(json.dumps(word(record)).encode()))
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert await read_store(clean_store_url) == before


class TestWithoutASecret:
    @pytest.fixture
    def settings(self, clean_store_url: str) -> Settings:
        return Settings(redis_url=clean_store_url)

    async def test_webhook_without_a_secret_is_unavailable(self, world: World) -> None:
        record = await make_pending(world.wiring)
        async with world.client() as client:
            answer = await send(client, word(record))
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/unavailable")
        assert "SAYSO_WEBHOOK_SECRET" in answer.json()["detail"]


async def test_webhook_decision_counts_for_the_reviewers_group(world: World) -> None:
    terms = RuleTerms(reviewers=("group:payments",))
    record = await make_pending(world.wiring, ask(terms=terms))
    async with world.client() as client:
        assert (await send(client, word(record), "msg_early")).status_code == 403
        await world.wiring.groups.create("payments", ("anna",), (), "root")
        assert (await send(client, word(record), "msg_late")).status_code == 200
    (decision,) = (await world.wiring.desk.suspensions.read(record.id)).record.items[0].decisions
    assert decision.by.groups == ("payments",)
