"""Slack passes the contract of channels; its cards are updated in place, and votes and reminders are in the thread."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from sayso.core.records.terms import Quorum
from sayso.core.transitions.deciding import decide
from service.channels.base import DeliveryFailed, Recipient
from service.channels.slack.api import SlackFailure
from service.channels.slack.outbound import Posted, SlackChannel
from tests.fakes.slack import FakeSlack, running_slack
from tests.fakes.slack_api import ANNA, PER_MINUTE, ROOM
from tests.fakes.slack_blocks import find_message_faults
from tests.sayso.samples import T0, word
from tests.service.channels.conformance import ARGS, DigestConformance, card_of, record_of
from tests.service.channels.slack.worlds import config_of

TO_ANNA = Recipient("anna", ANNA)
CARD = card_of(record_of(ARGS["small"]))


@pytest.fixture
def provider() -> Iterator[FakeSlack]:
    with running_slack() as slack:
        yield slack


@pytest.fixture
async def channel(provider: FakeSlack) -> AsyncIterator[SlackChannel]:
    opened = SlackChannel(config_of(provider))
    yield opened
    await opened.aclose()


class TestSlackToPeople(DigestConformance):
    @pytest.fixture
    def recipient(self) -> Recipient:
        return TO_ANNA

    def check_limits(self, body: Any) -> None:
        assert find_message_faults(body) == []


class TestSlackToARoom(TestSlackToPeople):
    @pytest.fixture
    def recipient(self) -> Recipient:
        return Recipient("", ROOM)


async def test_repeated_event_is_one_message(channel: SlackChannel, provider: FakeSlack) -> None:
    first = await channel.send(TO_ANNA, CARD, "e1")
    assert await channel.send(TO_ANNA, CARD, "e1") == first
    assert len(provider.messages) == 1
    assert await channel.send(TO_ANNA, CARD, "e2") != first


async def test_conversation_is_opened_once_per_person(channel: SlackChannel, provider: FakeSlack) -> None:
    for number in range(3):
        await channel.send(TO_ANNA, CARD, f"e{number}")
    assert provider.calls.count("conversations.open") == 1
    assert Posted.read(await channel.send(TO_ANNA, CARD, "e9")).channel == f"D{ANNA}"


async def test_votes_and_reminders_are_in_the_cards_thread(channel: SlackChannel, provider: FakeSlack) -> None:
    record = record_of(ARGS["small"])
    terms = record.items[0].terms.model_copy(update={"quorum": Quorum(approve=2)})
    record = record.model_copy(update={"items": (record.items[0].model_copy(update={"terms": terms}),)})
    reference = await channel.send(Recipient("", ROOM), card_of(record), "e1")
    voted = decide(record, word(record), T0 + 5).record
    for _ in range(2):
        await channel.update(Recipient("", ROOM), reference, card_of(voted))
    await channel.remind(Recipient("", ROOM), reference, card_of(voted), "e2")
    card, vote, reminder = provider.messages
    assert {vote.thread_ts, reminder.thread_ts} == {card.ts}
    assert vote.text == "ada approved. The item waits for more decisions."
    assert reminder.text.startswith("Reminder: refund(")
    assert "Decision: ada approved" in card.screen
    assert "sayso:approve" in card.buttons


@pytest.mark.parametrize("error", ["account_inactive", "channel_not_found", "token_revoked", "missing_scope"])
async def test_final_error_is_not_repeated(channel: SlackChannel, provider: FakeSlack, error: str) -> None:
    provider.errors["chat.postMessage"] = error
    with pytest.raises(DeliveryFailed) as failed:
        await channel.send(TO_ANNA, CARD, "e1")
    assert failed.value.permanent
    assert error in failed.value.reason


@pytest.mark.parametrize("error", ["fatal_error", "internal_error", "service_unavailable", "invalid_blocks"])
async def test_other_errors_are_repeated(channel: SlackChannel, provider: FakeSlack, error: str) -> None:
    provider.errors["chat.postMessage"] = error
    with pytest.raises(SlackFailure) as failed:
        await channel.send(TO_ANNA, CARD, "e1")
    assert (failed.value.permanent, failed.value.error) == (False, error)


async def test_person_who_left_is_a_final_failure(channel: SlackChannel, provider: FakeSlack) -> None:
    provider.people[ANNA]["deleted"] = True
    with pytest.raises(DeliveryFailed, match="deactivated in Slack") as failed:
        await channel.send(TO_ANNA, CARD, "e1")
    assert failed.value.permanent


async def test_limit_of_a_channel_says_when_to_repeat(channel: SlackChannel) -> None:
    for number in range(PER_MINUTE["chat.postMessage"]):
        await channel.send(Recipient("", ROOM), CARD, f"e{number}")
    with pytest.raises(DeliveryFailed) as failed:
        await channel.send(Recipient("", ROOM), CARD, "last")
    assert (failed.value.retry_after_s, failed.value.permanent) == (30, False)


async def test_deleted_card_is_not_updated_again(channel: SlackChannel, provider: FakeSlack) -> None:
    reference = await channel.send(TO_ANNA, CARD, "e1")
    provider.messages.clear()
    with pytest.raises(DeliveryFailed) as failed:
        await channel.update(TO_ANNA, reference, CARD)
    assert failed.value.permanent


async def test_wrong_token_is_a_final_failure_without_the_token(provider: FakeSlack) -> None:
    channel = SlackChannel(config_of(provider, bot_token="xoxb-wrong-secret"))
    with pytest.raises(DeliveryFailed) as failed:
        await channel.send(TO_ANNA, CARD, "e1")
    await channel.aclose()
    assert failed.value.permanent
    assert "wrong-secret" not in failed.value.reason


async def test_slack_that_is_away_is_a_failure_to_repeat() -> None:
    with running_slack() as slack:
        channel = SlackChannel(config_of(slack))
    with pytest.raises(DeliveryFailed, match="did not respond") as failed:
        await channel.send(TO_ANNA, CARD, "e1")
    await channel.aclose()
    assert not failed.value.permanent
