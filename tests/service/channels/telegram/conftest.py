"""Give the tests of Telegram a fake server, a channel to it and a listening bot."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from service.channels.telegram.inbound import listen
from service.channels.telegram.outbound import TelegramChannel, TelegramConfig
from service.core.wiring import Wiring
from tests.builders import make_person
from tests.fakes.telegram import TOKEN, Telegram, serving_telegram
from tests.service.channels.telegram.bots import ANNA, BEN, Bot


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with serving_telegram(ANNA, BEN) as telegram:
        yield telegram


@pytest.fixture
async def channel(telegram: Telegram) -> AsyncIterator[TelegramChannel]:
    fields = {"name": "tg", "kind": "telegram", "bot_token": TOKEN, "base_url": telegram.url, "poll_s": 1}
    channel = TelegramChannel(TelegramConfig.model_validate(fields))
    yield channel
    await channel.aclose()


@pytest.fixture
async def bot(telegram: Telegram, channel: TelegramChannel, wiring: Wiring) -> AsyncIterator[Bot]:
    await make_person(wiring, "anna")
    await make_person(wiring, "ben")
    bot, ending = Bot(telegram, channel, wiring), asyncio.Event()
    listening = asyncio.create_task(listen(channel, wiring, ending))
    yield bot
    ending.set()
    await asyncio.wait_for(listening, 10)
