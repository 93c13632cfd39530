"""Endpoints, failed messages and senders over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from starlette.responses import Response

from sayso.core.clock import now_ms
from sayso.core.signing import SignedMessage, verify_message
from service.core.settings import Settings
from tests.builders import approve, make_pending
from tests.receivers import Receiver, deliver_events
from tests.service.worlds import POLICY, World

ENDPOINTS = "/api/v1/webhooks/endpoints"
FAILURES = "/api/v1/webhooks/failures"
SENDERS = "/api/v1/webhooks/senders"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, aap_allow_loopback=True)


async def register(client: AsyncClient, receiver: Receiver, **members: Any) -> dict[str, Any]:
    """Return an endpoint of the receiver, verified."""
    made = await client.post(ENDPOINTS, json={"url": receiver.url, **members})
    assert made.status_code == 201, made.text
    endpoint: dict[str, Any] = made.json()
    verified = await client.post(f"{ENDPOINTS}/{endpoint['id']}/verify")
    assert verified.status_code == 200, verified.text
    assert verified.json()["state"] == "active"
    return endpoint


def events(receiver: Receiver) -> list[dict[str, Any]]:
    """Return the events that came in, without challenges."""
    return [one for one in (json.loads(body) for _, body in receiver.came) if one["type"] != "webhook.verification"]


def verifies(receiver: Receiver, *keys: str) -> bool:
    """Return whether the last message verifies with each of the keys."""
    headers, body = receiver.came[-1]
    message = SignedMessage(headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"], body)
    return all(verify_message([key], message, now_ms()) for key in keys)


async def test_endpoint_receives_nothing_before_it_returned_a_challenge(world: World, receiver: Receiver) -> None:
    async with world.client("root") as root:
        made = (await root.post(ENDPOINTS, json={"url": receiver.url})).json()
        assert (made["state"], made["secret"][:6]) == ("unverified", "whsec_")
        await make_pending(world.wiring)
        await deliver_events(world.wiring)
        assert receiver.came == []
        receiver.say = lambda message: Response(json.dumps({"challenge": "another"}))
        refused = await root.post(f"{ENDPOINTS}/{made['id']}/verify")
        assert refused.status_code == 409
        assert "answered 200 instead of 200 with the challenge" in refused.json()["detail"]
        assert verifies(receiver, made["secret"])
        listed = (await root.get(ENDPOINTS)).json()["endpoints"]
        assert [(one["id"], one["state"]) for one in listed] == [(made["id"], "unverified")]
        assert "secret" not in listed[0]


@pytest.mark.parametrize("signature", ["hmac", "ed25519"])
async def test_events_of_an_item_are_sent_signed(world: World, receiver: Receiver, signature: str) -> None:
    async with world.client("root") as root:
        endpoint = await register(root, receiver, signature=signature)
    record = await make_pending(world.wiring)
    await deliver_events(world.wiring)
    assert [one["type"] for one in events(receiver)] in (
        ["item.created", "run.suspended"],
        ["run.suspended", "item.created"],
    )
    assert verifies(receiver, endpoint["public_key"] or endpoint["secret"])
    await approve(world.wiring, record)
    await deliver_events(world.wiring)
    decided = events(receiver)[-1]
    assert (decided["type"], decided["data"]["outcome"]["by"]) == ("item.decided", "anna")
    assert decided["data"]["item"]["link"].endswith(f"/items/{record.id}/i1")
    count = len(receiver.came)
    await deliver_events(world.wiring)
    assert len(receiver.came) == count


async def test_agent_registers_endpoints_for_its_own_runs_only(world: World, receiver: Receiver) -> None:
    async with world.client("demo") as demo, world.client("other") as other, world.client("anna") as anna:
        endpoint = await register(demo, receiver, events=["item.created"])
        assert endpoint["owner"] == "demo"
        assert (await other.get(ENDPOINTS)).json() == {"endpoints": []}
        for act in ("verify", "rotate", "disable"):
            assert (await other.post(f"{ENDPOINTS}/{endpoint['id']}/{act}")).status_code == 404
        assert (await other.delete(f"{ENDPOINTS}/{endpoint['id']}")).status_code == 404
        assert (await anna.get(ENDPOINTS)).status_code == 403
        assert (await anna.post(ENDPOINTS, json={"url": receiver.url})).status_code == 403
        assert (await demo.get(SENDERS)).status_code == 403
    await make_pending(world.wiring, owner="other")
    await make_pending(world.wiring, owner="demo")
    await deliver_events(world.wiring)
    assert [one["data"]["run"]["owner"] for one in events(receiver)] == ["demo"]


async def test_rotated_endpoint_signs_with_both_secrets_for_a_while(world: World, receiver: Receiver) -> None:
    async with world.client("root") as root:
        endpoint = await register(root, receiver)
        path = f"{ENDPOINTS}/{endpoint['id']}"
        new = (await root.post(f"{path}/rotate", json={"overlap_s": 60})).json()["secret"]
        await root.post(f"{path}/verify")
        assert verifies(receiver, endpoint["secret"], new)
        newest = (await root.post(f"{path}/rotate", json={"overlap_s": 0})).json()["secret"]
        await root.post(f"{path}/verify")
        headers, _ = receiver.came[-1]
        assert headers["webhook-signature"].count("v1,") == 1
        assert verifies(receiver, newest)


async def test_disabled_and_deleted_endpoints_receive_nothing(world: World, receiver: Receiver) -> None:
    async with world.client("root") as root:
        disabled, deleted = await register(root, receiver), await register(root, receiver)
        assert (await root.post(f"{ENDPOINTS}/{disabled['id']}/disable")).json()["reason"] == "Disabled by root."
        assert (await root.delete(f"{ENDPOINTS}/{deleted['id']}")).status_code == 204
        assert (await root.delete(f"{ENDPOINTS}/{deleted['id']}")).status_code == 404
        await make_pending(world.wiring)
        await deliver_events(world.wiring)
        assert events(receiver) == []


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://10.0.0.1/", "https://u:p@example.com/", "https://169.254.169.254/x", "x"]
)
async def test_endpoint_at_an_unsafe_url_is_refused(world: World, url: str) -> None:
    async with world.client("root") as root:
        refused = await root.post(ENDPOINTS, json={"url": url})
    assert refused.status_code == 422


async def test_failed_messages_are_listed_with_reasons_and_sent_again(world: World, receiver: Receiver) -> None:
    async with world.client("demo") as demo, world.client("root") as root, world.client("other") as other:
        await register(demo, receiver, events=["item.created", "run.suspended"])
        receiver.say = lambda message: Response(status_code=500)
        await make_pending(world.wiring)
        await deliver_events(world.wiring)
        failed = (await demo.get(FAILURES)).json()["failures"]
        assert (await root.get(FAILURES)).json()["failures"] == failed
        assert {(one["status"], one["tries"], one["reason"]) for one in failed} == {
            (500, 1, "The receiver answered 500.")
        }
        assert all(one["next_try_at"] for one in failed)
        ids = [one["id"] for one in failed]
        assert (await other.get(FAILURES)).json() == {"failures": []}
        assert (await other.post(f"{FAILURES}/redeliver", json={"ids": ids})).status_code == 404
        receiver.say = lambda message: Response(status_code=204)
        assert (await demo.post(f"{FAILURES}/redeliver", json={"ids": ids})).json() == {"redelivered": len(ids)}
        before = len(receiver.came)
        await deliver_events(world.wiring)
        assert len(receiver.came) == before + len(ids)
        assert (await demo.get(FAILURES)).json() == {"failures": []}


async def test_event_schemas_describe_every_event(world: World) -> None:
    async with world.client("anna") as anna:
        found = (await anna.get("/api/v1/webhooks/events")).json()["events"]
    assert set(found) == {
        "item.created",
        "item.decided",
        "item.escalated",
        "item.withdrawn",
        "run.suspended",
        "run.resumed",
        "run.finished",
    }


async def test_senders_are_created_rotated_and_revoked_by_an_admin(world: World) -> None:
    async with world.client("root") as root, world.client("anna") as anna:
        made = await root.post(SENDERS, json={"name": "pager", "reviewer": "anna"})
        assert made.status_code == 201
        sender = made.json()
        assert (sender["reviewer"], sender["path"]) == ("anna", f"/hooks/decisions/{sender['id']}")
        assert (await root.post(SENDERS, json={"name": "pager", "reviewer": "anna"})).status_code == 409
        assert (await root.post(SENDERS, json={"name": "x", "reviewer": "nobody"})).status_code == 404
        assert (await root.post(SENDERS, json={"name": "A b", "reviewer": "anna"})).status_code == 422
        assert (await anna.post(SENDERS, json={"name": "mine", "reviewer": "anna"})).status_code == 403
        rotated = (await root.post(f"{SENDERS}/{sender['id']}/rotate")).json()
        assert rotated["secret"] not in ("", sender["secret"])
        assert (await root.post(f"{SENDERS}/{sender['id']}/revoke")).json()["revoked_at"]
        assert (await root.post(f"{SENDERS}/{sender['id']}/rotate")).status_code == 409
        assert (await root.post(f"{SENDERS}/whs_none/revoke")).status_code == 404
        assert [one["name"] for one in (await root.get(SENDERS)).json()["senders"]] == ["pager"]
        assert (await root.post(SENDERS, json={"name": "pager", "reviewer": "anna"})).status_code == 201
