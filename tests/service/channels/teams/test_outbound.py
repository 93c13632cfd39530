"""Cards of Teams: literal text, one size for all, and a bot that signs in."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.records.items import ItemKind
from sayso.core.transitions.deciding import decide
from service.channels.base import CardAction, DeliveryFailed, Recipient
from service.channels.teams.outbound import TeamsChannel, TeamsConfig
from tests.fakes.teams import (
    ANNA,
    APP,
    PASSWORD,
    TENANT_ID,
    Teams,
    check_card,
    list_actions,
    serving_teams,
)
from tests.sayso.samples import T0, ask, pending, word
from tests.service.channels.conformance import ARGS, DigestConformance, card_of, record_of

ROOM = "19:abc@thread.tacv2"


def fields_of(teams: Teams, **fields: Any) -> dict[str, Any]:
    urls = {"service_url": teams.url, "login_url": teams.url, "metadata_url": f"{teams.url}/metadata"}
    basic = {"kind": "teams", "app_id": APP, "app_password": PASSWORD, "tenant_id": TENANT_ID}
    return {**basic, **urls, **fields}


def open_channel(teams: Teams, **fields: Any) -> TeamsChannel:
    return TeamsChannel(TeamsConfig.model_validate({"name": "office", **fields_of(teams, **fields)}))


@pytest.fixture
def provider() -> Iterator[Teams]:
    with serving_teams(ANNA) as teams:
        yield teams


@pytest.fixture
async def channel(provider: Teams) -> AsyncIterator[TeamsChannel]:
    channel = open_channel(provider)
    yield channel
    await channel.aclose()


@pytest.fixture
def recipient() -> Recipient:
    return Recipient("anna", ANNA)


class TestTeamsConformance(DigestConformance):
    def check_limits(self, body: Any) -> None:
        check_card(body)


def test_text_with_a_function_of_the_client_has_no_approve(channel: TeamsChannel) -> None:
    card = card_of(record_of({"note": "{{DATE(2026-11-22T06:08:39Z, SHORT)}}"}))
    rendered = channel.render(card)
    assert not rendered.complete
    assert CardAction.APPROVE not in rendered.actions


def test_controls_carry_item_and_digest(channel: TeamsChannel) -> None:
    card = card_of(record_of(ARGS["small"]))
    actions = list_actions(channel.render(card).body)
    assert set(actions) == {"approve", "deny", "changes", "ask"}
    for one in actions.values():
        assert one["data"] == {"suspension_id": "sus_1", "item_id": "i1", "digest": card.digest}


def test_closed_card_is_not_refreshed(channel: TeamsChannel) -> None:
    record = record_of(ARGS["small"])
    assert channel.render(card_of(record)).body["refresh"]["action"]["verb"] == "refresh"
    closed = channel.render(card_of(decide(record, word(record), T0 + 5).record))
    assert "refresh" not in closed.body


def test_value_is_picked_from_the_choices(channel: TeamsChannel) -> None:
    card = card_of(pending(ask(kind=ItemKind.INPUT)))
    (value,) = [one for one in channel.render(card).body["actions"] if one["title"] == "Enter value…"]
    assert value["card"]["body"][0]["type"] == "Input.Text"
    rendered = channel.render(replace(card, choices=("EUR", 7)))
    check_card(rendered.body)
    (value,) = [one for one in rendered.body["actions"] if one["title"] == "Enter value…"]
    choices = [{"title": "EUR", "value": '"EUR"'}, {"title": "7", "value": "7"}]
    assert value["card"]["body"][0]["choices"] == choices
    assert CardAction.VALUE not in channel.render(replace(card, choices=tuple(range(51)))).actions


async def test_token_and_conversation_are_requested_once(provider: Teams, channel: TeamsChannel) -> None:
    for _ in range(3):
        await channel.send(Recipient("anna", ANNA), card_of(record_of(ARGS["small"])), "e1")
    assert provider.tokens == 1
    assert len(provider.messages) == 3


async def test_refused_token_is_renewed(provider: Teams, channel: TeamsChannel) -> None:
    await channel.send(Recipient("anna", ANNA), card_of(record_of(ARGS["small"])), "e1")
    provider.valid.clear()
    with pytest.raises(DeliveryFailed, match="a new one is requested") as failed:
        await channel.send(Recipient("anna", ANNA), card_of(record_of(ARGS["small"])), "e2")
    assert not failed.value.permanent
    await channel.send(Recipient("anna", ANNA), card_of(record_of(ARGS["small"])), "e2")


async def test_wrong_password_is_a_final_failure_that_hides_it(provider: Teams) -> None:
    channel = open_channel(provider, app_password="wrong~password")
    with pytest.raises(DeliveryFailed, match="Correct them") as failed:
        await channel.send(Recipient("anna", ANNA), card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent
    assert "wrong~password" not in repr(channel) + failed.value.reason
    await channel.aclose()


async def test_room_takes_shared_cards(provider: Teams) -> None:
    channel = open_channel(provider, room=ROOM)
    assert channel.shared_address == ROOM
    record = record_of(ARGS["small"])
    reference = await channel.send(Recipient("", ROOM), card_of(record), "e1")
    await channel.update(Recipient("", ROOM), reference, card_of(decide(record, word(record), T0 + 5).record))
    (message,) = provider.messages
    assert message.conversation == ROOM
    assert "ada approved" in message.text
    await channel.aclose()


@pytest.mark.parametrize("address", ["", "anna", "../../x", "a:1", f"{ANNA}/x"])
async def test_address_that_is_no_person_is_a_final_failure(channel: TeamsChannel, address: str) -> None:
    with pytest.raises(DeliveryFailed, match="no person or room") as failed:
        await channel.send(Recipient("anna", address), card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent


@pytest.mark.parametrize("fields", [{"app_id": "x"}, {"tenant_id": "common"}, {"room": "a:1"}, {"service_url": "x"}])
def test_config_refuses_what_cannot_work(provider: Teams, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        open_channel(provider, **fields)
