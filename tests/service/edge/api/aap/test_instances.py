"""Creating and changing instances: receivers are verified first, and secrets are never returned."""

import asyncio
import json
from typing import Any

import pytest
from httpx import AsyncClient, Response
from redis.asyncio import Redis
from starlette.responses import Response as Answer

from sayso.core.clock import new_uuid, now_ms
from sayso.core.signing import SignedMessage, verify_message
from service.core.settings import Settings
from tests.receivers import REGISTRATION, SECRET, Receiver
from tests.service.edge.api.aap.clients import connected, make_provisioner
from tests.service.worlds import World


async def make(client: AsyncClient, key: str | None = None, **members: Any) -> Response:
    return await client.post("/instances", json=members, headers={"Idempotency-Key": key or new_uuid()})


async def test_receiver_gets_one_signed_challenge_before_registration(
    world: World, provisioner: str, receiver: Receiver
) -> None:
    async with connected(world, provisioner) as client:
        created = await make(client, instance_name="shop", delivery=receiver.delivery())
        assert created.status_code == 201
        shown = await client.get(f"/instances/{created.json()['instance']['id']}")
    ((headers, body),) = receiver.came
    message = json.loads(body)
    assert message | {"challenge": "", "created_at": ""} == {
        "id": headers["webhook-id"],
        "type": "webhook.verification",
        "registration_id": REGISTRATION,
        "instance_id": created.json()["instance"]["id"],
        "created_at": "",
        "challenge": "",
    }
    signed = SignedMessage(message["id"], headers["webhook-timestamp"], headers["webhook-signature"], body)
    assert verify_message([SECRET], signed, now_ms()) == message["id"]
    assert shown.json() == created.json()["instance"]
    assert shown.json()["delivery"] == {"type": "webhook", "url": receiver.url, "registration_id": REGISTRATION}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status_code=204),
        Answer("{}"),
        Answer('{"challenge": "guess"}'),
        Answer("x" * 100_000),
        Answer(status_code=302, headers={"Location": "https://localhost/"}),
        Answer(status_code=500),
    ],
)
async def test_failed_challenge_creates_nothing(
    world: World, provisioner: str, receiver: Receiver, settings: Settings, answer: Answer
) -> None:
    receiver.say = lambda _: answer
    async with connected(world, provisioner) as client:
        refused = await make(client, "one", delivery=receiver.delivery())
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (422, "webhook_verification_failed")
    async with Redis.from_url(settings.store_url) as store:
        assert [name async for name in store.scan_iter("*aap*") if b"attempts" not in name] == []
        assert [name async for name in store.scan_iter("*idem*")] == []
    assert len(receiver.came) == 1


async def test_challenge_with_further_members_fails(world: World, provisioner: str, receiver: Receiver) -> None:
    receiver.say = lambda message: Answer(json.dumps({"challenge": message["challenge"], "more": 1}))
    async with connected(world, provisioner) as client:
        assert (await make(client, delivery=receiver.delivery())).status_code == 422


@pytest.mark.parametrize(
    "url", ["http://localhost/x", "https://10.0.0.1/x", "https://a@localhost/x", "https://localhost/#x"]
)
async def test_unsafe_address_is_never_connected_to(world: World, provisioner: str, url: str) -> None:
    async with connected(world, provisioner) as client:
        delivery = {"type": "webhook", "url": url, "registration_id": REGISTRATION, "signing_secret": SECRET}
        refused = await make(client, delivery=delivery)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_webhook_url")


@pytest.mark.parametrize(
    "members",
    [
        {"signing_secret": "whsec_c2hvcnQ="},
        {"signing_secret": SECRET.removeprefix("whsec_")},
        {"registration_id": "1"},
        {"type": "mail"},
        {"more": 1},
        {"url": None},
    ],
)
async def test_invalid_delivery_is_refused(
    world: World, provisioner: str, receiver: Receiver, members: dict[str, Any]
) -> None:
    async with connected(world, provisioner) as client:
        assert (await make(client, delivery=receiver.delivery(**members))).status_code == 422
    assert receiver.came == []


async def test_instance_changes_name_and_delivery(world: World, provisioner: str, receiver: Receiver) -> None:
    async with connected(world, provisioner) as client:
        created = (await make(client)).json()["instance"]
        assert created["name"] == f"instance-{created['id'][:8]}"

        async def change(key: str, **members: Any) -> Any:
            answer = await client.patch(f"/instances/{created['id']}", json=members, headers={"Idempotency-Key": key})
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert await change("a", instance_name="shop") == {"id": created["id"], "name": "shop"}
        changed = await change("b", delivery=receiver.delivery())
        assert (changed["name"], changed["delivery"]["url"]) == ("shop", receiver.url)
        assert await change("b", delivery=receiver.delivery()) == changed
        assert len(receiver.came) == 1
        assert await change("c", delivery=None) == {"id": created["id"], "name": "shop"}
        assert await change("b", delivery=receiver.delivery()) == {"id": created["id"], "name": "shop"}
        other = await client.patch(f"/instances/{created['id']}", json={}, headers={"Idempotency-Key": "a"})
        assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")


async def test_key_of_a_deleted_instance_stays_used(world: World, provisioner: str) -> None:
    async with connected(world, provisioner) as client:
        created = (await make(client, "one")).json()
        assert (await client.delete(f"/instances/{created['instance']['id']}")).status_code == 204
        again = await make(client, "one")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "instance_deleted")


async def test_another_token_of_the_provisioner_gets_no_credential(world: World, provisioner: str) -> None:
    second = await make_provisioner(world.wiring)
    async with connected(world, provisioner) as client:
        created = (await make(client, "one")).json()
    async with connected(world, second) as client:
        again = await make(client, "one")
        assert (again.status_code, again.json()["error"]["code"]) == (409, "credential_not_available")
        assert (await client.get(f"/instances/{created['instance']['id']}")).json() == created["instance"]


async def test_store_has_no_credential(world: World, provisioner: str, settings: Settings) -> None:
    async with connected(world, provisioner) as client:
        token = (await make(client, "one")).json()["credential"]["token"]
    async with Redis.from_url(settings.store_url) as store:
        names = [name async for name in store.scan_iter()]
        kept = b"".join([*names, *[await store.dump(name) or b"" for name in names]])
    for secret in (token, token.removeprefix("sayso_instance_"), provisioner):
        assert secret.encode() not in kept


async def test_registrations_are_limited_per_provisioner_and_host(
    world: World, provisioner: str, receiver: Receiver
) -> None:
    async with connected(world, provisioner) as client:
        answers = await asyncio.gather(*(make(client, delivery=receiver.delivery()) for _ in range(14)))
    limited = [answer for answer in answers if answer.status_code == 429]
    assert len(limited) >= 4
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in limited)
    assert all(answer.json()["error"]["type"] == "rate_limit" for answer in limited)
    assert len(receiver.came) <= 10


async def test_revoked_provisioner_is_refused(world: World, provisioner: str) -> None:
    (key,) = [one for one in await world.wiring.api_keys.list_all() if one.kind == "provisioner"]
    await world.wiring.api_keys.revoke(key.id)
    async with connected(world, provisioner) as client:
        assert (await make(client)).status_code == 401
