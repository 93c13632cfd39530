"""Web push: encrypted for one browser, signed, small, replaced by tag, and only to public addresses."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.responses import Response

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.errors import InvalidInput
from service.assembly import assemble
from service.channels.base import DeliveryFailed, Recipient, destination_of
from service.channels.push import (
    LARGEST_PAYLOAD_BYTES,
    PushChannel,
    PushConfig,
    check_subscription,
    make_key,
    render_card,
)
from service.core.outgoing.connections import UnsafeUrl
from service.core.settings import Settings
from service.core.store.channels import Subscription, Subscriptions
from service.core.wiring import Wiring
from tests.fakes.push import Browser, PushService, encode, serving_push
from tests.sayso.samples import T0, word
from tests.service.channels.conformance import ARGS, CANARY, DigestConformance, card_of, record_of

BASIC = {"name": "push", "kind": "push", "contact": "mailto:ops@example.com"}


@pytest.fixture
async def parts(clean_store_url: str, certificate: Path) -> AsyncIterator[Wiring]:
    async with assemble(Settings(redis_url=clean_store_url, aap_allow_loopback=True)) as wiring:
        yield wiring


@pytest.fixture
def provider(certificate: Path) -> Iterator[PushService]:
    with serving_push(certificate) as service:
        yield service


@pytest.fixture
def channel(parts: Wiring) -> PushChannel:
    return open_channel(parts)


@pytest.fixture
async def subscriber(parts: Wiring, provider: PushService) -> Browser:
    found = provider.subscribe()
    await parts.part(Subscriptions).save(found.subscription)
    return found


@pytest.fixture
def recipient(subscriber: Browser) -> Recipient:
    return Recipient("anna", subscriber.subscription.address)


def open_channel(parts: Wiring, **fields: Any) -> PushChannel:
    channel = PushChannel(PushConfig.model_validate({**BASIC, **fields}))
    channel.attach(parts)
    return channel


def closed(record: SuspensionRecord) -> SuspensionRecord:
    return decide(record, word(record), T0 + 5).record


class TestPushConformance(DigestConformance):
    decides = False
    links_items = False

    def check_limits(self, body: Any) -> None:
        assert len(body) <= LARGEST_PAYLOAD_BYTES


async def test_notifications_of_an_item_replace_each_other(
    channel: PushChannel, subscriber: Browser, recipient: Recipient
) -> None:
    record = record_of(ARGS["small"])
    reference = await channel.send(recipient, card_of(record), "e1")
    await channel.remind(recipient, reference, card_of(record), "e2")
    await channel.update(recipient, reference, card_of(closed(record)))
    assert {one["tag"] for one in subscriber.received} == {reference}
    assert {one["topic"] for one in subscriber.headers} == {reference}
    assert [one["alert"] for one in subscriber.received] == [True, True, False]
    assert subscriber.received[-1]["body"].startswith("ada approved this over api")


async def test_payload_has_headline_path_and_tag_alone(
    channel: PushChannel, subscriber: Browser, recipient: Recipient
) -> None:
    await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")
    (payload,) = subscriber.received
    assert payload == {
        "title": "Decide before it runs",
        "body": "refund(order: A-1, amount: 250.5)",
        "path": "/items/sus_1/i1",
        "tag": payload["tag"],
        "alert": True,
    }


async def test_urgent_item_has_high_urgency(channel: PushChannel, subscriber: Browser, recipient: Recipient) -> None:
    record = record_of(ARGS["small"])
    item = record.items[0]
    urgent = item.model_copy(update={"terms": item.terms.model_copy(update={"urgent": True})})
    await channel.send(recipient, card_of(record), "e1")
    await channel.send(recipient, card_of(record.model_copy(update={"items": (urgent,)})), "e2")
    assert [one["urgency"] for one in subscriber.headers] == ["normal", "high"]
    assert subscriber.headers[0]["ttl"] == "43200"


@pytest.mark.parametrize("status", [404, 410])
async def test_browser_that_is_gone_is_unsubscribed(
    channel: PushChannel, parts: Wiring, provider: PushService, recipient: Recipient, status: int
) -> None:
    provider.refuse(status)
    for _ in range(2):
        with pytest.raises(DeliveryFailed, match="unsubscribed") as failed:
            await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")
        assert failed.value.permanent
    assert await parts.part(Subscriptions).find(recipient.address) is None


@pytest.mark.parametrize(
    ("status", "permanent"), [(400, True), (403, True), (413, True), (301, True), (429, False), (500, False)]
)
async def test_refusal_of_a_push_service_is_explained(
    channel: PushChannel, parts: Wiring, provider: PushService, recipient: Recipient, status: int, permanent: bool
) -> None:
    provider.refusal = Response(status_code=status, headers={"Location": "https://localhost/elsewhere"})
    with pytest.raises(DeliveryFailed, match=str(status)) as failed:
        await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent == permanent
    assert await parts.part(Subscriptions).find(recipient.address) is not None


async def test_unreadable_subscription_is_tried_again(
    channel: PushChannel, parts: Wiring, subscriber: Browser, recipient: Recipient
) -> None:
    newer = json.dumps({**subscriber.subscription.model_dump(), "mood": "calm"})
    store, contacts = parts.store.redis, parts.store.keys.subscriptions
    await store.hset(contacts, recipient.address, newer)
    with pytest.raises(DeliveryFailed, match="cannot be read: mood") as failed:
        await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")
    assert not failed.value.permanent


async def test_endpoint_in_the_own_network_is_never_reached(
    clean_store_url: str, certificate: Path, provider: PushService, subscriber: Browser, recipient: Recipient
) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as strict:
        with pytest.raises(DeliveryFailed) as failed:
            await open_channel(strict).send(recipient, card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent
    assert subscriber.received == []


async def test_destination_is_the_push_service_of_the_browser(channel: PushChannel, recipient: Recipient) -> None:
    assert destination_of(channel, recipient) == recipient.address.partition("/")[0]
    assert destination_of(channel, recipient).startswith("localhost:")


async def test_key_is_made_once_and_kept(parts: Wiring) -> None:
    first = await open_channel(parts).public_key()
    assert await open_channel(parts).public_key() == first
    assert await open_channel(parts, private_key=make_key()).public_key() != first


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"contact": "ops@example.com"}, "mailto:"),
        ({"contact": "mailto:ops@example.com\nx"}, "mailto:"),
        ({"private_key": "short"}, "32 bytes"),
        ({"keep_s": -1}, "greater than"),
    ],
)
def test_faulty_push_fields_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        PushConfig.model_validate({**BASIC, **fields})


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.example.com/1",
        "https://127.0.0.1/1",
        "https://10.0.0.1/1",
        "https://[::1]/1",
        "https://169.254.169.254/latest",
        "https://user@push.example.com/1",
        "javascript:alert(1)",
        "",
    ],
)
def test_endpoint_that_is_not_public_https_is_refused(endpoint: str) -> None:
    with pytest.raises(UnsafeUrl):
        check_subscription(endpoint, "x", "y")


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        ("", ""),
        (encode(b"\x04" + b"\x01" * 64), encode(b"a" * 16)),
        (encode(b"a" * 65), encode(b"a" * 16)),
        ("ä" * 87, encode(b"a" * 16)),
        ("!" * 87, encode(b"a" * 16)),
        ("A" * 100_000, encode(b"a" * 16)),
    ],
)
def test_keys_that_are_no_keys_are_refused(p256dh: str, auth: str) -> None:
    with pytest.raises(InvalidInput, match="keys are invalid"):
        check_subscription("https://push.example.com/1", p256dh, auth)


def test_subscription_of_a_browser_is_accepted_with_padding() -> None:
    known = PushService("https://push.example.com").subscribe().subscription
    found = check_subscription(known.endpoint, known.p256dh + "=", known.auth + "==")
    assert found == Subscription(endpoint=known.endpoint, p256dh=known.p256dh, auth=known.auth)
    assert found.address.startswith("push.example.com/")


def test_long_reason_of_a_closed_item_fits() -> None:
    record = record_of({"token": CANARY, "text": "\U0001f600" * 5_000})
    record = decide(record, word(record, message="\U0001f600" * 2_000), T0 + 5).record
    body = render_card(card_of(record)).body
    assert len(body) <= LARGEST_PAYLOAD_BYTES
    assert CANARY.encode() not in body
