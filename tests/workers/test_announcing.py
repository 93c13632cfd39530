"""Every change of an item or a run is announced in its commit while an endpoint exists, with secrets masked."""

import json
from typing import Any, cast

import jsonschema_rs
from redis.asyncio import Redis

from sayso.core.clock import new_id
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.events import WebhookEvent
from sayso.core.records.items import ItemDraft
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolDefinition
from sayso.core.transitions.deciding import cancel, suspend
from service.channels.webhook_events import describe_schema
from service.core.desk.changes import draft_suspension
from service.core.settings.limits import TENANT
from service.core.store.deliveries import Deliveries
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.webhooks.store import AnnouncementQueue, Endpoint, Endpoints, TimedSecret
from tests.builders import approve, ask, finish, make_pending, person, run_ref
from workers.clock.ticks import process_due
from workers.delivery import Courier
from workers.outbox import FanOut

KEYS = TenantKeys(TENANT)
CANARY = "canary-7d1f4c"
LOGIN = ToolDefinition(
    name="log_in",
    description="Sign in.",
    parameters={"type": "object", "properties": {"password": {"type": "string", "format": "password"}}},
)


async def add_endpoint(wiring: Wiring, **members: Any) -> Endpoint:
    """Return a verified endpoint for every event."""
    fields: dict[str, Any] = {
        "id": new_id("whe"),
        "url": "https://hooks.example.com/",
        "events": tuple(WebhookEvent),
        "created_by": "root",
        "created_at_ms": 1,
        "state": "active",
        "secrets": (TimedSecret(secret="whsec_AAAA"),),
    }
    endpoint = Endpoint(**fields | members)
    await wiring.part(Endpoints).add(endpoint)
    return endpoint


async def read_events(wiring: Wiring, redis: Redis, endpoint: Endpoint) -> list[dict[str, Any]]:
    """Fan out, and return the events for an endpoint in the order of their time; each fits its schema."""
    await FanOut(wiring).announce_due()
    found = []
    for name in await redis.zrange(KEYS.lane(endpoint.id), 0, -1):
        waiting = await wiring.part(Deliveries).read(name.decode())  # type: ignore[union-attr]  # bytes, as stored
        assert waiting is not None
        found.append(json.loads(waiting.delivery.body))
    for event in found:
        jsonschema_rs.validator_for(describe_schema(WebhookEvent(event["type"]))).validate(event)
    return sorted(found, key=lambda event: (event["timestamp"], event["type"]))


async def types(wiring: Wiring, redis: Redis, endpoint: Endpoint) -> list[str]:
    return sorted(event["type"] for event in await read_events(wiring, redis, endpoint))


async def test_nothing_is_written_without_an_endpoint(wiring: Wiring, redis: Redis) -> None:
    record = await make_pending(wiring)
    await approve(wiring, record)
    assert not await redis.exists(KEYS.announcements)
    endpoint = await add_endpoint(wiring)
    await make_pending(wiring)
    assert await redis.zcard(KEYS.announcements) == 2
    await wiring.part(Endpoints).delete(endpoint.id)
    await make_pending(wiring)
    assert await redis.zcard(KEYS.announcements) == 2
    await FanOut(wiring).announce_due()
    assert not await redis.exists(KEYS.announcements)
    assert not await redis.exists(KEYS.deliveries)


async def test_life_of_a_run_is_announced(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    record = await make_pending(wiring, late_ms=1000)  # who decides in the same millisecond was not waited for
    await finish(wiring, await approve(wiring, record))
    found = await read_events(wiring, redis, endpoint)
    assert sorted(event["type"] for event in found) == [
        "item.created",
        "item.decided",
        "run.finished",
        "run.resumed",
        "run.suspended",
    ]
    by_type = {event["type"]: event["data"] for event in found}
    item = by_type["item.created"]["item"]
    assert (item["tool"], item["args"], item["masked"]) == ("refund", {"order": "A-1", "amount": 250.5}, False)
    assert (item["digest"], item["link"]) == (
        record.items[0].digest,
        f"{wiring.settings.public_url}/items/{record.id}/i1",
    )
    assert by_type["item.decided"]["outcome"]["verdict"] == "approved"
    assert by_type["run.finished"]["status"] == "completed"
    assert by_type["run.suspended"]["items"] == [{"id": "i1", "tool": "refund", "link": item["link"]}]


async def test_event_says_who_denied_the_same_call_last(wiring: Wiring, redis: Redis) -> None:
    first = await make_pending(wiring)
    one = first.items[0]
    no = DecisionRequest(action="deny", digest=one.digest, message="Never for A-1.")
    await wiring.desk.decide(first.id, one.item_id, no, person("anna"))
    endpoint = await add_endpoint(wiring)
    record = await make_pending(wiring)
    other = await make_pending(wiring, ask(order="A-2"))
    events = [one["data"] for one in await read_events(wiring, redis, endpoint) if one["type"] == "item.created"]
    found = {one["item"]["suspension_id"]: one["item"]["denied_before"] for one in events}
    assert found.pop(other.id) is None
    ((suspension_id, denied),) = found.items()
    assert (suspension_id, denied["by"], denied["message"]) == (record.id, "anna", "Never for A-1.")
    assert denied["link"] == f"{wiring.settings.public_url}/items/{first.id}/i1"
    assert "anna denied" in denied["text"]
    await approve(wiring, record)
    (decided,) = [one for one in await read_events(wiring, redis, endpoint) if one["type"] == "item.decided"]
    assert decided["data"]["item"]["denied_before"] is None


async def test_withdrawn_item_is_announced(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    record = await make_pending(wiring, ask(0), ask(1))
    one = record.items[0]
    decision = DecisionRequest(action="deny", digest=one.digest)
    await wiring.desk.decide(record.id, one.item_id, decision, person("anna"))
    await wiring.desk.suspensions.change(
        record.id, lambda found, at_ms: cancel(found, person("anna"), "No longer needed.", at_ms)
    )
    found = await read_events(wiring, redis, endpoint)
    assert [event["data"]["item"]["id"] for event in found if event["type"] == "item.withdrawn"] == ["i2"]
    assert [event["data"]["item"]["id"] for event in found if event["type"] == "item.decided"] == ["i1"]
    assert [event["data"]["status"] for event in found if event["type"] == "run.finished"] == ["cancelled"]


async def test_escalation_and_fallback_are_announced(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    terms = RuleTerms.model_validate({"timeout_s": 600, "escalate": [{"after_s": 60, "reviewers": ["ben"]}]})
    record = await make_pending(wiring, ask(terms=terms), late_ms=61_000)
    await process_due(wiring)
    found = await read_events(wiring, redis, endpoint)
    (escalated,) = [event["data"] for event in found if event["type"] == "item.escalated"]
    assert (escalated["step"], escalated["item"]["suspension_id"]) == (1, record.id)
    late = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=60)), late_ms=61_000)
    await process_due(wiring)
    decided = [event["data"] for event in await read_events(wiring, redis, endpoint) if event["type"] == "item.decided"]
    assert [(one["item"]["suspension_id"], one["outcome"]["by"]) for one in decided] == [(late.id, "timeout")]


async def test_call_that_a_rule_allows_suspends_nobody(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    draft = draft_suspension(TENANT, run_ref(), state=seal_state(b"{}"))
    await wiring.desk.suspensions.create(draft.id, lambda at_ms: suspend(draft, (), at_ms))
    assert await types(wiring, redis, endpoint) == []


async def test_secrets_are_masked_in_every_event(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    record = await _make_login(wiring)
    one = record.items[0]
    decision = DecisionRequest(action="deny", digest=one.digest, message=f"never send {CANARY}")
    await wiring.desk.decide(record.id, one.item_id, decision, person("anna"))
    found = await read_events(wiring, redis, endpoint)
    assert len(found) == 3
    assert CANARY not in json.dumps(found)
    items = [event["data"]["item"] for event in found if "item" in event["data"]]
    assert {(item["args"]["password"], item["masked"], item["digest"]) for item in items} == {("[secret]", True, None)}


async def test_secret_of_an_edit_is_masked_where_its_reviewer_quotes_it(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    record = await _make_login(wiring)
    one, edited = record.items[0], "canary-of-an-edit"
    decision = DecisionRequest(action="approve", digest=one.digest, args={"password": edited}, message=f"use {edited}")
    await wiring.desk.decide(record.id, one.item_id, decision, person("anna"))
    found = json.dumps(await read_events(wiring, redis, endpoint))
    assert "use [secret]" in found
    assert edited not in found
    assert CANARY not in found


async def _make_login(wiring: Wiring) -> SuspensionRecord:
    await wiring.runs.save_definitions([LOGIN])
    draft = draft_suspension(TENANT, run_ref(title=f"Log in with {CANARY}"), state=seal_state(b"{}"))
    item = ask()
    tool = item.tool.model_copy(update={"name": "log_in", "args": {"password": CANARY}, "definition": LOGIN.digest})
    fields = {"tool": tool, "prompt": item.prompt.model_copy(update={"reason": f"because of {CANARY}"})}

    def begin(at_ms: int) -> Change:
        return suspend(draft, (ItemDraft.model_validate({**dict(item), **fields}),), at_ms)

    return (await wiring.desk.suspensions.create(draft.id, begin)).record


async def test_only_wanted_events_go_to_an_endpoint(wiring: Wiring, redis: Redis) -> None:
    some = await add_endpoint(wiring, events=(WebhookEvent.RUN_SUSPENDED,))
    others = await add_endpoint(wiring, owner="other")
    unverified = await add_endpoint(wiring, state="unverified")
    await make_pending(wiring)
    assert await types(wiring, redis, some) == ["run.suspended"]
    assert await types(wiring, redis, others) == []
    assert await types(wiring, redis, unverified) == []


async def test_interrupted_fan_out_saves_each_message_once(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    await make_pending(wiring)
    announced = await redis.zrange(KEYS.announcements, 0, -1)
    before = await read_events(wiring, redis, endpoint)
    (first, *_) = await wiring.part(Deliveries).lane(endpoint.id).due(2**52)
    waiting = await wiring.part(Deliveries).read(first)
    assert waiting is not None
    await wiring.part(Deliveries).end(waiting, "delivered", 1)
    await redis.zadd(KEYS.announcements, {one.decode(): 1 for one in cast("list[bytes]", announced)})
    assert len(await read_events(wiring, redis, endpoint)) == len(before) - 1


async def test_announcement_of_a_deleted_run_is_dropped(wiring: Wiring, redis: Redis) -> None:
    await add_endpoint(wiring)
    record = await make_pending(wiring)
    await redis.delete(KEYS.suspension(record.id))
    await FanOut(wiring).announce_due()
    assert not await redis.exists(KEYS.announcements)


async def test_unreadable_announcements_delay_no_other(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    later = {json.dumps({"id": f"evt_{number}", "mood": "calm"}): 1 for number in range(201)}
    await redis.zadd(KEYS.announcements, later)
    await make_pending(wiring)
    assert await types(wiring, redis, endpoint) == []
    assert await types(wiring, redis, endpoint) == ["item.created", "run.suspended"]
    assert await redis.zcard(KEYS.announcements) == len(later)


async def test_events_wait_for_the_version_that_reads_their_endpoint(wiring: Wiring, redis: Redis) -> None:
    first, second = await add_endpoint(wiring), await add_endpoint(wiring)
    raw = await redis.hget(KEYS.endpoints, second.id) or b""
    await redis.hset(KEYS.endpoints, second.id, json.dumps({**json.loads(raw), "mood": "calm"}))
    await make_pending(wiring)
    assert await types(wiring, redis, first) == ["item.created", "run.suspended"]
    assert await types(wiring, redis, second) == []
    await redis.hset(KEYS.endpoints, second.id, raw)
    await wiring.part(AnnouncementQueue).bring_forward(await wiring.schedule.now_ms())
    assert await types(wiring, redis, second) == ["item.created", "run.suspended"]
    assert not await redis.exists(KEYS.announcements)


async def test_message_to_an_unreadable_endpoint_is_kept(wiring: Wiring, redis: Redis) -> None:
    endpoint = await add_endpoint(wiring)
    await make_pending(wiring)
    assert len(await read_events(wiring, redis, endpoint)) == 2
    raw = await redis.hget(KEYS.endpoints, endpoint.id) or b""
    await redis.hset(KEYS.endpoints, endpoint.id, json.dumps({**json.loads(raw), "mood": "calm"}))
    courier = Courier(wiring)
    assert await courier.deliver_due() == 1
    await courier.finish()
    assert await redis.zcard(KEYS.lane(endpoint.id)) == 2
    now_ms = await wiring.schedule.now_ms()
    assert await wiring.part(Deliveries).due(now_ms) == [], "the lane waits, too"
