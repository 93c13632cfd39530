"""Telegram's messages: strict HTML, buttons that fit, and failures as the bot API means them."""

import json
import logging
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.text.language import count_units
from sayso.core.transitions.deciding import decide
from service.channels.base import CardAction, DeliveryFailed, Recipient
from service.channels.telegram.card import (
    CALLBACK_BYTES,
    MESSAGE_UNITS,
    cut,
    matches,
    read_data,
    write_data,
)
from service.channels.telegram.outbound import TelegramChannel, TelegramConfig
from service.core.logs import configure_logs
from tests.fakes.telegram import TOKEN, Telegram, check_body, serving_telegram
from tests.sayso.samples import T0, word
from tests.service.channels.conformance import ARGS, DigestConformance, card_of, record_of

ANNA = Recipient("anna", "4711")
REAL_ID = "sus_019aa4a2f1e2c3d4e5f60718293a4b5c"


def open_channel(telegram: Telegram, **fields: Any) -> TelegramChannel:
    basic = {"name": "tg", "kind": "telegram", "bot_token": TOKEN, "base_url": telegram.url, "poll_s": 1}
    return TelegramChannel(TelegramConfig.model_validate({**basic, **fields}))


@pytest.fixture
def provider() -> Iterator[Telegram]:
    with serving_telegram(4711) as telegram:
        yield telegram


@pytest.fixture
async def channel(provider: Telegram) -> AsyncIterator[TelegramChannel]:
    channel = open_channel(provider)
    yield channel
    await channel.aclose()


@pytest.fixture
def recipient() -> Recipient:
    return ANNA


class TestTelegramConformance(DigestConformance):
    def check_limits(self, body: Any) -> None:
        check_body(body)


@pytest.mark.parametrize("item_id", ["i1", "i500"])
def test_button_carries_the_item_and_its_digest(item_id: str) -> None:
    card = replace(card_of(record_of(ARGS["small"])), suspension_id=REAL_ID, item_id=item_id)
    data = write_data(card, CardAction.APPROVE)
    assert len(data.encode()) <= CALLBACK_BYTES
    control = read_data(data)
    assert control is not None
    assert control[:3] == (CardAction.APPROVE, REAL_ID, item_id)
    assert matches(control, card.digest)
    assert not matches(control, "0" * 64)
    assert not matches(control._replace(mark=control.mark[:21]), card.digest)


@pytest.mark.parametrize("data", ["", "a", "x1.1.abc", "a1.1", "a1..abc", "a.1.abc", "a1.1.a.b", "\U0001f600"])
def test_read_data_ignores_what_is_no_button_of_a_card(data: str) -> None:
    assert read_data(data) is None


def test_item_that_fits_no_button_has_only_the_link(channel: TelegramChannel) -> None:
    card = replace(card_of(record_of(ARGS["small"])), suspension_id="sus_" + "1" * 60)
    assert channel.render(card).actions == {CardAction.OPEN}
    assert channel.render(replace(card, suspension_id="other")).actions == {CardAction.OPEN}


def test_longest_facts_keep_the_limit(channel: TelegramChannel) -> None:
    card = card_of(record_of(ARGS["long"]))
    long = replace(
        card,
        facts=tuple(one._replace(text="\U0001f600" * 900) for one in (card.facts * 3)[:10]),
        claims=tuple(one._replace(text="<" * 900) for one in (card.claims * 3)[:2]),
        warnings=("w" * 900,) * 3,
        decisions=("d" * 900,) * 9,
        closing="c" * 900,
        masked=True,
        link="http://localhost/" + "l" * 90,
    )
    rendered = channel.render(long)
    assert count_units(rendered.text) <= MESSAGE_UNITS
    check_body(rendered.body)


def test_card_that_just_fits_is_complete_and_one_more_is_not(channel: TelegramChannel) -> None:
    free = MESSAGE_UNITS - count_units(channel.render(card_of(record_of({"body": ""}))).text)
    sizes = {}
    for more in range(-200, 200):
        rendered = channel.render(card_of(record_of({"body": "\u05d0" * (free + more)})))
        check_body(rendered.body)
        sizes[more] = rendered.complete
    assert sizes[-200]
    assert not sizes[199]
    assert sorted(sizes.values(), reverse=True) == list(sizes.values())


def test_link_to_this_machine_is_text_because_buttons_refuse_it(channel: TelegramChannel) -> None:
    card = replace(card_of(record_of(ARGS["small"])), link="http://localhost:8321/items/sus_1/i1")
    rendered = channel.render(card)
    assert card.link in rendered.text
    assert "localhost" not in json.dumps(rendered.body["reply_markup"])


def test_cut_never_halves_a_character() -> None:
    assert cut("\U0001f600" * 3, 6) == "\U0001f600" * 3
    assert cut("\U0001f600" * 4, 6) == "\U0001f600\U0001f600…"


async def test_channel_without_decisions_has_only_the_link(provider: Telegram) -> None:
    channel = open_channel(provider, decide=False)
    assert channel.render(card_of(record_of(ARGS["small"]))).actions == {CardAction.OPEN}
    await channel.aclose()


async def test_update_that_changes_nothing_succeeds(provider: Telegram, channel: TelegramChannel) -> None:
    record = record_of(ARGS["small"])
    reference = await channel.send(ANNA, card_of(record), "e1")
    await channel.update(ANNA, reference, card_of(record))
    assert provider.messages[0].edits == 0
    for _ in range(2):
        await channel.update(ANNA, reference, card_of(decide(record, word(record), T0 + 5).record))
    assert provider.messages[0].edits == 1


async def test_update_of_a_deleted_message_is_a_final_failure(provider: Telegram, channel: TelegramChannel) -> None:
    with pytest.raises(DeliveryFailed) as failed:
        await channel.update(ANNA, "99", card_of(record_of(ARGS["small"])))
    assert failed.value.permanent


async def test_reminder_replies_to_the_card(provider: Telegram, channel: TelegramChannel) -> None:
    card = card_of(record_of(ARGS["markup"]))
    reference = await channel.send(ANNA, card, "e1")
    await channel.remind(ANNA, reference, card, "e2")
    assert provider.messages[-1].reply_to == int(reference)
    assert "<b>x</b>" in provider.messages[-1].text


@pytest.mark.parametrize("address", ["-100200300", "@anna", "", "٤٧١١", "9" * 20])
async def test_address_that_is_no_private_chat_is_a_final_failure(channel: TelegramChannel, address: str) -> None:
    with pytest.raises(DeliveryFailed, match="not the id of a private chat") as failed:
        await channel.send(Recipient("anna", address), card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent


async def test_blocked_bot_is_a_final_failure_with_its_reason(provider: Telegram, channel: TelegramChannel) -> None:
    provider.blocked.add(4711)
    with pytest.raises(DeliveryFailed, match="has blocked the bot") as failed:
        await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent


async def test_wrong_token_is_a_final_failure_that_hides_it(provider: Telegram) -> None:
    channel = open_channel(provider, bot_token="1:" + "wrong" * 9)
    with pytest.raises(DeliveryFailed, match="Correct bot_token") as failed:
        await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent
    assert "wrongwrong" not in repr(channel) + failed.value.reason
    await channel.aclose()


async def test_unreachable_provider_is_a_failure_to_repeat(provider: Telegram) -> None:
    channel = open_channel(provider, base_url="http://127.0.0.1:9")
    with pytest.raises(DeliveryFailed, match="cannot be reached") as failed:
        await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert not failed.value.permanent
    await channel.aclose()


async def test_token_is_in_no_log(
    channel: TelegramChannel, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(owner, hook, getattr(owner, hook))  # puts it back
    handlers, level = list(logging.root.handlers), logging.root.level
    configure_logs("clock", "debug")
    try:
        await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    finally:
        logging.captureWarnings(False)
        logging.basicConfig(handlers=handlers, level=level, force=True)
    assert TOKEN.partition(":")[2] not in "".join(capfd.readouterr())


@pytest.mark.parametrize("token", ["", "abc", "1:short", "x:" + "a" * 30, "1:" + "a b" * 20])
def test_config_refuses_what_is_no_token(token: str) -> None:
    with pytest.raises(ValidationError, match="copy it from @BotFather"):
        TelegramConfig.model_validate({"name": "tg", "kind": "telegram", "bot_token": token})
