"""Questions to the requester from Slack: typed into a modal, asked once, and by reviewers only."""

import json

from sayso.core.records.suspensions import SuspensionRecord
from tests.builders import answer_question, approve
from tests.fakes.slack_api import Message
from tests.service.channels.slack.worlds import NAME, SlackWorld

LABEL = "Question to the requester"


async def open_modal(world: SlackWorld) -> tuple[SuspensionRecord, Message]:
    await world.link()
    record, message = await world.ask()
    assert await world.press(message, "ask") == ""
    return record, message


async def test_question_is_asked_once_and_its_answer_is_on_the_card(slack_world: SlackWorld) -> None:
    record, _ = await open_modal(slack_world)
    sent = slack_world.slack.submit(slack_world.slack.modal(), **{LABEL: "Which order?"})
    for _ in range(2):
        answer = (await slack_world.interact(sent)).json()
        assert answer["response_action"] == "update"
        assert "Your question was sent to demo." in json.dumps(answer["view"])
    item = await slack_world.read(record)
    (inquiry,) = item.inquiries
    assert (inquiry.text, inquiry.by.id, inquiry.by.channel) == ("Which order?", "anna", NAME)
    assert item.open
    await answer_question(slack_world.world.wiring, record, "Order A-4711")
    assert "Order A-4711" in await slack_world.show(record)


async def test_second_question_waits_for_the_first_answer(slack_world: SlackWorld) -> None:
    record, message = await open_modal(slack_world)
    await slack_world.interact(slack_world.slack.submit(slack_world.slack.modal(), **{LABEL: "Which order?"}))
    await slack_world.press(message, "ask")
    again = slack_world.slack.submit(slack_world.slack.modal(), **{LABEL: "And why?"})
    assert "has not answered the question of anna yet" in (await slack_world.interact(again)).text
    assert len((await slack_world.read(record)).inquiries) == 1


async def test_question_after_the_decision_is_told_who_decided(slack_world: SlackWorld) -> None:
    record, message = await open_modal(slack_world)
    await approve(slack_world.world.wiring, record, "root")
    late = slack_world.slack.submit(slack_world.slack.modal(), **{LABEL: "Which order?"})
    assert "root approved this over api at " in (await slack_world.interact(late)).text
    assert "root approved this" in await slack_world.press(message, "ask")
    assert (await slack_world.read(record)).inquiries == ()


async def test_requester_cannot_ask_themselves(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask(owner="anna")
    assert "another reviewer" in await slack_world.press(message, "ask")
    assert (await slack_world.read(record)).inquiries == ()
