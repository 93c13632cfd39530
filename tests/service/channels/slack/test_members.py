"""Slack is asked who somebody is, and again after half a minute."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sayso.errors import NotAllowed, Unavailable
from service.channels.slack.members import CACHE_MS, Members
from service.channels.slack.outbound import SlackChannel
from tests.fakes.slack import FakeSlack
from tests.fakes.slack_api import ANNA, TEAM
from tests.service.channels.slack.worlds import config_of

AT_MS = 1_795_255_307_000


@pytest.fixture
async def members(slack: FakeSlack) -> AsyncIterator[Members]:
    channel = SlackChannel(config_of(slack))
    yield Members(channel.api, TEAM)
    await channel.aclose()


async def test_account_is_asked_about_again_after_half_a_minute(members: Members, slack: FakeSlack) -> None:
    await members.check(ANNA, AT_MS)
    slack.join(ANNA, is_restricted=True)
    await members.check(ANNA, AT_MS + CACHE_MS - 1)
    with pytest.raises(NotAllowed, match="guests"):
        await members.check(ANNA, AT_MS + CACHE_MS)
    slack.join(ANNA)
    with pytest.raises(NotAllowed, match="guests"):
        await members.check(ANNA, AT_MS + CACHE_MS + 1)
    await members.check(ANNA, AT_MS + 2 * CACHE_MS)


async def test_burst_of_presses_asks_slack_once(members: Members, slack: FakeSlack) -> None:
    await asyncio.gather(*(members.check(ANNA, AT_MS) for _ in range(20)))
    assert slack.calls.count("users.info") == 1


async def test_clock_that_goes_back_asks_again(members: Members, slack: FakeSlack) -> None:
    await members.check(ANNA, AT_MS)
    await members.check(ANNA, AT_MS - 1)
    assert slack.calls.count("users.info") == 2


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_refusal_is_neither_cached_nor_a_yes(members: Members, slack: FakeSlack, status: int) -> None:
    slack.refuse(status, 7)
    with pytest.raises(Unavailable, match="Nothing was changed"):
        await members.check(ANNA, AT_MS)
    slack.refuse(0)
    await members.check(ANNA, AT_MS)
