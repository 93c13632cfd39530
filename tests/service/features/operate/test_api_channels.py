"""Admins list channels without their secrets, and send test cards."""

from typing import Literal

import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from service.channels.base import CardAction, DeliveryFailed
from service.channels.config import HIDDEN, ChannelConfig, describe_settings
from service.channels.kinds import Channels
from service.channels.previews import build_test_card
from tests.channels import MemoryChannel
from tests.sayso.samples import T0
from tests.service.worlds import World


class MemoryConfig(ChannelConfig):
    kind: Literal["memory"]
    token: SecretStr | None = None
    spares: tuple[SecretStr, ...] = ()
    url: str = "https://user:p4ss-canary@hooks.example:8443/path/s3cret?sig=s3cret"


CONFIG = MemoryConfig(name="ops", kind="memory", token=SecretStr("s3cret"), spares=(SecretStr("s3cret"),))


@pytest.fixture
def channel(world: World) -> MemoryChannel:
    """The one channel of the running service."""
    channel = MemoryChannel(name="ops")
    set_channel(world.app, channel)
    return channel


def set_channel(app: FastAPI, channel: MemoryChannel) -> None:
    app.state.channels = Channels({"ops": channel}, {"ops": CONFIG})


async def link(world: World, person: str, address: str) -> None:
    code = await world.wiring.contacts.create_code(person, "ops")
    await world.wiring.contacts.redeem_code("ops", code.code, address)


def test_describe_settings_hides_secrets_and_paths_of_urls() -> None:
    assert {one.name: one.text for one in describe_settings(CONFIG)} == {
        "decide": "yes",
        "per_minute": "60",
        "token": HIDDEN,
        "spares": HIDDEN,
        "url": "https://hooks.example:8443",
    }


async def test_admin_lists_channels_without_secrets(world: World, channel: MemoryChannel) -> None:
    async with world.client("root") as root, world.client("anna") as anna:
        response = await root.get("/api/v1/channels")
        assert (await anna.get("/api/v1/channels")).status_code == 403
    (one,) = response.json()["channels"]
    assert (one["name"], one["kind"], one["destination"]) == ("ops", "memory", "memory.example")
    assert "s3cret" not in response.text
    assert "p4ss" not in response.text


async def test_test_card_reaches_the_person(world: World, channel: MemoryChannel) -> None:
    await link(world, "anna", "A1")
    async with world.client("root") as root:
        response = await root.post("/api/v1/channels/ops/test", json={"person": "anna"})
    assert response.json() == {"answers": [{"accepted": True, "text": "m1"}]}
    assert channel.cards["A1"].headline == "Test card of ops"
    assert channel.render(channel.cards["A1"]).actions == {CardAction.OPEN}


async def test_advice_on_a_test_card_leads_to_one(world: World, channel: MemoryChannel) -> None:
    await link(world, "anna", "A1")
    async with world.client("root") as root:
        refused = await root.post("/api/v1/channels/ops/test", json={})
        assert "Name a person" in refused.json()["detail"], refused.text
        sent = await root.post("/api/v1/channels/ops/test", json={"person": "anna"})
    assert sent.json()["answers"][0]["accepted"], sent.text


async def test_test_card_shows_why_the_provider_refused(world: World, channel: MemoryChannel) -> None:
    channel.shared_address, channel.failure = "#ops", DeliveryFailed("HTTP 403: not in channel", permanent=True)
    async with world.client("root") as root:
        response = await root.post("/api/v1/channels/ops/test", json={})
    assert response.json() == {"answers": [{"accepted": False, "text": "HTTP 403: not in channel"}]}


@pytest.mark.parametrize(
    ("who", "name", "person", "status"),
    [
        ("root", "none", "anna", 404),
        ("root", "ops", "anna", 422),
        ("root", "ops", "nobody", 422),
        ("root", "ops", "", 422),
        ("anna", "ops", "anna", 403),
        ("demo", "ops", "anna", 403),
    ],
)
async def test_test_card_is_refused(
    world: World, channel: MemoryChannel, who: str, name: str, person: str, status: int
) -> None:
    async with world.client(who) as client:
        response = await client.post(f"/api/v1/channels/{name}/test", json={"person": person})
    assert response.status_code == status, response.text
    assert channel.calls == []


def test_test_card_is_marked_and_cannot_be_decided() -> None:
    card = build_test_card("ops", "anna", "root", T0, "https://x.example")
    assert (card.live, card.answers) == (False, ())
    assert "test card" in card.closing
