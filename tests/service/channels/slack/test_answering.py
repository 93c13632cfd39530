"""Slack is answered at once; what takes longer goes on and shows its result afterwards."""

import json

import pytest

from service.channels.base import AT_ONCE
from service.channels.slack.acting import SlackDesk
from service.channels.slack.answering import answer_command, answer_interaction
from tests.service.channels.slack.worlds import NAME, SlackWorld


@pytest.fixture
def desk(slack_world: SlackWorld) -> SlackDesk:
    return SlackDesk(slack_world.channel, slack_world.world.wiring)


async def test_press_is_acknowledged_before_it_decides(desk: SlackDesk, slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    assert await answer_interaction(desk, slack_world.slack.press(message, "sayso:approve")) is None
    assert (await slack_world.read(record)).open
    await desk.channel.background.finish()
    assert not (await slack_world.read(record)).open


async def test_burst_of_presses_is_decided_in_turns(desk: SlackDesk, slack_world: SlackWorld) -> None:
    await slack_world.link()
    asked = [await slack_world.ask() for _ in range(AT_ONCE + 4)]
    for _, message in asked:
        assert await answer_interaction(desk, slack_world.slack.press(message, "sayso:approve")) is None
    await desk.channel.background.finish()
    assert not [record.id for record, _ in asked if (await slack_world.read(record)).open]


async def test_slow_submission_shows_its_result_in_the_modal(desk: SlackDesk, slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    await slack_world.press(message, "edit")
    view = slack_world.slack.modal()
    for typed, said in (("lots", "Enter a number"), ("9", "Your decision is recorded."), ("8", "anna approved this")):
        sent = slack_world.slack.submit(view, amount=typed)
        answer = await answer_interaction(desk, sent, 0)
        assert answer is not None
        assert "is being recorded" in json.dumps(answer["view"])
        await desk.channel.background.finish()
        shown = json.dumps(slack_world.slack.views[view["id"]])
        assert said in shown
    assert len((await slack_world.read(record)).decisions) == 1


async def test_slow_command_says_its_result_later(desk: SlackDesk, slack_world: SlackWorld) -> None:
    code = (await slack_world.world.wiring.contacts.create_code("anna", NAME)).code
    answer = await answer_command(desk, slack_world.slack.command(f"link {code}"), 0)
    assert answer["text"] == "One moment…"
    await desk.channel.background.finish()
    assert [one["text"] for one in slack_world.slack.responses] == ["Linked to anna. You can now decide here."]
