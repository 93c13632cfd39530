"""Notices: short, without markup and arguments, to every place that accepts them."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from sayso.core.text.language import count_units
from service.channels.base import DeliveryFailed, Recipient
from service.channels.config import InvalidChannels, read_channels
from service.channels.notice import MESSAGE_UNITS, NoticeChannel, NoticeConfig, render_card
from tests.fakes.notices import SECRET, Place, serving_place
from tests.service.channels.conformance import ARGS, ChannelConformance, card_of, record_of

PLACES = Recipient("", "places")


def open_channel(*urls: str) -> NoticeChannel:
    return NoticeChannel(NoticeConfig.model_validate({"name": "feed", "kind": "notice", "urls": urls}))


@pytest.fixture
def provider() -> Iterator[Place]:
    with serving_place() as place:
        yield place


@pytest.fixture
def channel(provider: Place) -> NoticeChannel:
    return open_channel(provider.url)


@pytest.fixture
def recipient() -> Recipient:
    return PLACES


class TestNoticeConformance(ChannelConformance):
    decides = False
    explains_refusals = False

    def check_limits(self, body: Any) -> None:
        assert set(body) == {"title", "body"}
        assert count_units(body["body"]) <= MESSAGE_UNITS
        assert "\n" not in body["title"]


def test_text_from_outside_is_no_markup() -> None:
    card = card_of(record_of(ARGS["small"]))
    hostile = replace(
        card, facts=tuple(one._replace(text="@everyone <!here> [a](http://x) `b` **c**") for one in card.facts)
    )
    text = render_card(hostile).text.replace(card.link, "")
    assert not set("@<>[]`*") & set(text)


def test_longest_texts_keep_the_link(channel: NoticeChannel) -> None:
    card = card_of(record_of(ARGS["small"]))
    facts = tuple(one._replace(text="\U0001f600" * 900) for one in (card.facts * 9)[:40])
    rendered = channel.render(replace(card, facts=facts, closing="c" * 900, tool="t" * 900))
    assert count_units(rendered.body["body"]) <= MESSAGE_UNITS
    assert rendered.body["body"].endswith(f"Open: {card.link}")


async def test_one_place_that_accepts_is_enough(provider: Place) -> None:
    channel = open_channel("json://127.0.0.1:9/gone", provider.url)
    with structlog.testing.capture_logs() as logs:
        await channel.send(PLACES, card_of(record_of(ARGS["small"])), "e1")
    assert len(provider.notices) == 1
    assert logs == [
        {"event": "notice_partly_sent", "log_level": "warning", "channel": "feed", "places": 2, "accepted": 1}
    ]


async def test_notices_need_no_thread_of_the_default_executor(provider: Place, channel: NoticeChannel) -> None:
    loop, free = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    blocked = loop.run_in_executor(None, free.wait)
    await channel.send(PLACES, card_of(record_of(ARGS["small"])), "e1")
    assert len(provider.notices) == 1
    assert not blocked.done()
    free.set()
    await blocked


async def test_secret_of_a_place_is_in_no_failure_or_log(
    provider: Place, channel: NoticeChannel, caplog: pytest.LogCaptureFixture
) -> None:
    provider.remove("places")
    with caplog.at_level(logging.DEBUG, "apprise"), pytest.raises(DeliveryFailed) as failed:
        await channel.send(PLACES, card_of(record_of(ARGS["small"])), "e1")
    assert SECRET not in failed.value.reason + repr(channel) + channel.destination
    assert not [one for one in caplog.records if one.name.startswith("apprise") and SECRET in one.getMessage()]


@pytest.mark.parametrize("url", ["nope://s3cret", "discord://", "", "s3cret"])
def test_unknown_url_is_reported_without_its_text(tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "channels.yaml"
    path.write_text(f"channels: {{feed: {{kind: notice, urls: [{json.dumps(url)}]}}}}")
    with pytest.raises(InvalidChannels, match="apprise does not know URL 1") as refused:
        read_channels(path, {"notice": NoticeConfig}, {})
    assert "s3cret" not in refused.value.message + caplog.text
