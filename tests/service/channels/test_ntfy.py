"""Notifications of ntfy: a link only, and arguments only on an own broker."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.transitions.deciding import decide
from service.channels.base import CardAction, DeliveryFailed, Recipient
from service.channels.ntfy import NtfyChannel, NtfyConfig
from tests.fakes.ntfy import TOKEN, TOPIC, Ntfy, check_message, serving_ntfy
from tests.sayso.samples import T0, word
from tests.service.channels.conformance import ARGS, ChannelConformance, card_of, record_of

EVERYBODY = Recipient("", "topic")


def open_channel(ntfy: Ntfy, **fields: Any) -> NtfyChannel:
    basic = {"name": "phones", "kind": "ntfy", "topic": TOPIC, "token": TOKEN, "base_url": ntfy.url}
    return NtfyChannel(NtfyConfig.model_validate({**basic, **fields}))


@pytest.fixture
def provider() -> Iterator[Ntfy]:
    with serving_ntfy() as ntfy:
        yield ntfy


@pytest.fixture
async def channel(provider: Ntfy) -> AsyncIterator[NtfyChannel]:
    channel = open_channel(provider, own_broker=True)
    yield channel
    await channel.aclose()


@pytest.fixture
def recipient() -> Recipient:
    return EVERYBODY


class TestNtfyConformance(ChannelConformance):
    decides = False

    def check_limits(self, body: Any) -> None:
        check_message(body)


class TestPublicBrokerConformance(ChannelConformance):
    decides = False

    @pytest.fixture
    async def channel(self, provider: Ntfy) -> AsyncIterator[NtfyChannel]:
        channel = open_channel(provider)
        yield channel
        await channel.aclose()

    def check_limits(self, body: Any) -> None:
        check_message(body)


def test_public_broker_learns_no_arguments_claims_or_reasons(provider: Ntfy) -> None:
    record = record_of(ARGS["small"])
    closed = decide(record, word(record, action="deny", message="Ask Ben first"), T0 + 5).record
    channel = open_channel(provider)
    for one in (record, closed):
        rendered = channel.render(card_of(one))
        for private in ("A-1", "250.5", "Refund A-1", "Ask Ben first"):
            assert private not in repr(rendered)
    assert "ada denied this" in channel.render(card_of(closed)).text
    assert "Ask Ben first" in open_channel(provider, own_broker=True).render(card_of(closed)).text


def test_urgent_item_has_the_highest_priority(channel: NtfyChannel) -> None:
    card = replace(card_of(record_of(ARGS["small"])), urgent=True)
    assert channel.render(card).body["priority"] == 5
    assert channel.render(replace(card, live=False, closing="Over.")).body["priority"] == 3


def test_longest_texts_keep_the_limits(channel: NtfyChannel) -> None:
    card = card_of(record_of(ARGS["emoji"]))
    long = replace(
        card,
        tool="\u05d0" * 500,
        facts=tuple(one._replace(text="\U0001f600" * 900) for one in (card.facts * 9)[:40]),
        closing="\u05d0" * 3000,
    )
    rendered = channel.render(long)
    check_message(rendered.body)
    assert rendered.actions == {CardAction.OPEN}


async def test_reminder_says_that_it_is_one(provider: Ntfy, channel: NtfyChannel) -> None:
    await channel.remind(EVERYBODY, "", card_of(record_of(ARGS["small"])), "e1")
    assert provider.messages[-1]["title"].startswith("Reminder: support asks: refund")


async def test_wrong_token_is_a_final_failure_that_hides_it(provider: Ntfy) -> None:
    channel = open_channel(provider, token="tk_wrong_wrong")
    with pytest.raises(DeliveryFailed) as failed:
        await channel.send(EVERYBODY, card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent
    assert "tk_wrong" not in repr(channel) + failed.value.reason
    assert TOPIC not in repr(channel) + failed.value.reason
    await channel.aclose()


@pytest.mark.parametrize("topic", ["", "a b", "a/b", "x" * 65, "ä"])
def test_config_refuses_what_is_no_topic(topic: str) -> None:
    with pytest.raises(ValidationError, match="letters, digits"):
        NtfyConfig.model_validate({"name": "phones", "kind": "ntfy", "topic": topic})
