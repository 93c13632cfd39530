"""The listener of Telegram takes each update once, also after failures."""

import asyncio

import pytest

from service.channels.base import DeliveryFailed
from service.channels.telegram.inbound import POSITION, Inbox, Update, listen
from service.channels.telegram.outbound import TelegramChannel
from service.core.store.channels import ChannelNotes
from service.core.wiring import Wiring
from tests.builders import make_pending, make_person
from tests.fakes.telegram import Telegram
from tests.service.channels.telegram.bots import ANNA, Bot


async def test_update_is_received_again_until_it_was_handled(
    telegram: Telegram, channel: TelegramChannel, wiring: Wiring
) -> None:
    telegram.say(ANNA, "one")
    telegram.say(ANNA, "two")
    assert len(await channel.poll(0)) == 2, "received, then the process dies"
    inbox = Inbox(channel, wiring)
    await inbox.poll()
    position = int(await wiring.part(ChannelNotes).read("tg", POSITION) or 0)
    assert len(telegram.messages) == 2
    telegram.say(ANNA, "three")
    await inbox.poll()
    assert [one["update_id"] >= position for one in telegram.updates] == [True]
    assert len(telegram.messages) == 3


async def test_unreadable_update_is_skipped(telegram: Telegram, channel: TelegramChannel, wiring: Wiring) -> None:
    telegram.updates.append({"update_id": 5, "message": {"message_id": "x"}})
    telegram.say(ANNA, "hello")
    await Inbox(channel, wiring).poll()
    assert len(telegram.messages) == 1


async def test_answer_that_fails_does_not_repeat_the_update(
    telegram: Telegram, channel: TelegramChannel, wiring: Wiring
) -> None:
    telegram.blocked.add(ANNA)
    telegram.say(ANNA, "hello")
    await Inbox(channel, wiring).poll()
    assert await wiring.part(ChannelNotes).read("tg", POSITION) is not None


async def test_refused_answer_is_given_again_and_decides_once(
    telegram: Telegram, channel: TelegramChannel, wiring: Wiring
) -> None:
    await make_person(wiring, "anna")
    code = (await wiring.contacts.create_code("anna", "tg")).code
    await wiring.contacts.redeem_code("tg", code, str(ANNA), "@anna_t")
    bot, record = Bot(telegram, channel, wiring), await make_pending(wiring)
    press_id = telegram.press(await bot.show(record), "Approve")
    telegram.refuse(502)
    before = telegram.requests
    taking = asyncio.create_task(Inbox(channel, wiring).take(Update.model_validate(telegram.updates[-1])))
    assert await asyncio.to_thread(telegram.requested, before + 2)
    telegram.refuse(0)
    await taking
    assert telegram.answers[press_id][0].startswith("anna approved this")
    assert len((await bot.read(record)).items[0].decisions) == 1


async def test_second_poller_is_an_error_to_repeat(
    telegram: Telegram, channel: TelegramChannel, wiring: Wiring
) -> None:
    telegram.refuse(409)
    with pytest.raises(DeliveryFailed, match="409"):
        await listen(channel, wiring, asyncio.Event())


async def test_listener_waits_as_long_as_telegram_requests(
    telegram: Telegram, channel: TelegramChannel, wiring: Wiring
) -> None:
    telegram.refuse(429, retry_after_s=3600)
    ending = asyncio.Event()
    listening = asyncio.create_task(listen(channel, wiring, ending))
    await asyncio.to_thread(telegram.requested, 1)
    ending.set()
    await asyncio.wait_for(listening, 10)
    assert telegram.requests == 1
