"""From an item to its card in Slack and back: sent by the notifier, decided anywhere, closed everywhere."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import EscalationStep, Quorum, RuleTerms
from tests.builders import approve, ask, make_pending, make_person
from tests.fakes.slack_api import ANNA
from tests.service.channels.slack.worlds import NAME, SlackWorld
from tests.waits import until
from workers.notify.attempts import ContactBook
from workers.notify.notifier import keep_notifying

BEN = "U0BEN"


@pytest.fixture
async def notified(slack_world: SlackWorld) -> AsyncIterator[SlackWorld]:
    """The app with a notifier beside it; anna and ben are linked."""
    wiring = slack_world.world.wiring
    await make_person(wiring, "ben")
    await slack_world.link()
    await slack_world.link(slack_world.slack.join(BEN), "ben")
    stopping = asyncio.Event()
    channels = slack_world.world.app.state.channels
    notifying = asyncio.create_task(keep_notifying(wiring, channels, ContactBook(wiring), stopping))
    yield slack_world
    stopping.set()
    await notifying


async def pending(slack_world: SlackWorld, **terms: object) -> SuspensionRecord:
    known = {"channels": (NAME,), "reviewers": ("anna", "ben"), **terms}
    return await make_pending(slack_world.world.wiring, ask(terms=RuleTerms.model_validate(known)))


async def deliveries_of(slack_world: SlackWorld, record: SuspensionRecord) -> dict[str, CardDelivery]:
    return {one.person: one for one in (await slack_world.read(record)).deliveries}


async def test_card_decided_in_slack_closes_for_everybody(notified: SlackWorld) -> None:
    slack = notified.slack

    async def sent() -> bool:
        return {one.channel for one in slack.messages} == {f"D{ANNA}", f"D{BEN}"}

    async def closed() -> bool:
        return all(set(one.buttons) == {"sayso:open"} for one in slack.messages)

    record = await pending(notified)
    await until(sent)
    theirs = next(one for one in slack.messages if one.channel == f"D{BEN}")
    await notified.interact(slack.press(theirs, "sayso:approve", BEN))
    await until(closed)
    assert all("ben approved this over ops-slack" in one.screen for one in slack.messages)
    found = await deliveries_of(notified, record)
    assert {one.state for one in found.values()} == {DeliveryState.SENT}


async def test_card_decided_on_the_dashboard_closes_in_slack(notified: SlackWorld) -> None:
    slack = notified.slack
    record = await pending(notified, reviewers=("anna",))

    async def sent() -> bool:
        return bool(slack.messages)

    async def closed() -> bool:
        return set(slack.messages[0].buttons) == {"sayso:open"}

    await until(sent)
    await approve(notified.world.wiring, record, "anna")
    await until(closed)
    assert "Closed: anna approved this over api at " in slack.messages[0].screen


async def test_votes_of_a_quorum_are_posted_in_every_thread(notified: SlackWorld) -> None:
    slack = notified.slack
    record = await pending(notified, quorum=Quorum(approve=2))

    async def sent() -> bool:
        return len(slack.messages) == 2

    async def voted() -> bool:
        return len([one for one in slack.messages if one.thread_ts]) == 2

    await until(sent)
    mine = next(one for one in slack.messages if one.channel == f"D{ANNA}")
    await notified.press(mine, "approve")
    await until(voted)
    votes = [one for one in slack.messages if one.thread_ts]
    assert {one.text for one in votes} == {"anna approved. The item waits for more decisions."}
    assert {one.channel for one in votes} == {f"D{ANNA}", f"D{BEN}"}
    theirs = next(one for one in slack.messages if one.channel == f"D{BEN}" and not one.thread_ts)
    await notified.press(theirs, "approve", BEN)
    assert not (await notified.read(record)).open


async def test_reviewer_who_left_slack_does_not_break_the_ask(notified: SlackWorld) -> None:
    slack = notified.slack
    slack.join(ANNA, deleted=True)
    step = EscalationStep(after_s=600, reviewers=("ben",))
    record = await pending(notified, reviewers=("anna",), timeout_s=3600, escalate=(step,))

    async def escalated() -> bool:
        return any(one.channel == f"D{BEN}" for one in slack.messages)

    await until(escalated)
    found = await deliveries_of(notified, record)
    assert found["anna"].state is DeliveryState.FAILED
    assert "deactivated in Slack" in str(found["anna"].reason)
    theirs = next(one for one in slack.messages if one.channel == f"D{BEN}")
    await notified.press(theirs, "approve", BEN)
    assert not (await notified.read(record)).open


async def test_form_marks_the_delivery_as_seen(notified: SlackWorld) -> None:
    slack = notified.slack
    record = await pending(notified)

    async def recorded() -> bool:
        return {one.state for one in (await deliveries_of(notified, record)).values()} == {DeliveryState.SENT}

    await until(recorded)
    mine = next(one for one in slack.messages if one.channel == f"D{ANNA}")
    await notified.press(mine, "deny")
    found = await deliveries_of(notified, record)
    assert (found["anna"].state, found["ben"].state) == (DeliveryState.SEEN, DeliveryState.SENT)
