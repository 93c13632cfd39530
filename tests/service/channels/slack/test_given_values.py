"""What people give in Slack reaches the call exactly, and typed passwords are shown nowhere afterwards."""

import json
from typing import Any

import pytest

from sayso.core.text.redaction import MASK
from service.channels.base import Recipient
from service.channels.deciding import read_card
from tests.fakes.slack_api import ROOM, Message
from tests.service.channels.given import BEYOND, PAIRS, SECRET, TYPED, WHOLE, call_with, read_views, redeem
from tests.service.channels.slack.worlds import SlackWorld
from tests.service.edge.api.test_exact_integers import call
from tests.service.edge.api.test_execution import ask


async def show(slack_world: SlackWorld, asked: dict[str, Any]) -> tuple[dict[str, Any], Message]:
    """Return a suspension of this call, and its card in a room."""
    await slack_world.link()
    answer = await ask(slack_world.world, asked)
    suspension: dict[str, Any] = answer.json()
    assert suspension["status"] == "pending", answer.text
    wiring = slack_world.world.wiring
    record = (await wiring.desk.suspensions.read(suspension["id"])).record
    card = await read_card(wiring, record, record.items[0])
    await slack_world.channel.send(Recipient("", ROOM), card, record.id)
    return suspension, slack_world.slack.messages[-1]


async def submit(slack_world: SlackWorld, message: Message, action: str, **typed: str) -> None:
    assert await slack_world.press(message, action) == ""
    answer = await slack_world.interact(slack_world.slack.submit(slack_world.slack.modal(), **typed))
    assert b"errors" not in answer.content, answer.text


@pytest.mark.parametrize("order", BEYOND)
async def test_card_shows_and_approves_an_integer_exactly(slack_world: SlackWorld, order: int) -> None:
    suspension, message = await show(slack_world, call(order))
    assert str(order) in message.screen
    assert await slack_world.press(message, "approve") == ""
    assert await redeem(slack_world.world, suspension) == f'{{"order": {order}}}'


@pytest.mark.parametrize(("typed", "given"), PAIRS)
async def test_edited_integer_in_slack_reaches_the_call_exactly(
    slack_world: SlackWorld, typed: float, given: int
) -> None:
    suspension, message = await show(slack_world, call(2**81))
    await submit(slack_world, message, "edit", order=str(typed))
    assert await redeem(slack_world.world, suspension) == f'{{"order": {given}}}'


async def test_unchanged_integer_in_a_modal_stays_exact(slack_world: SlackWorld) -> None:
    suspension, message = await show(slack_world, call_with(WHOLE, "move", account=2**80, login="ann"))
    await submit(slack_world, message, "edit", login="bob")
    assert await redeem(slack_world.world, suspension) == f'{{"account": {2**80}, "login": "bob"}}'


@pytest.mark.parametrize(("typed", "given"), PAIRS)
async def test_integer_given_as_a_value_in_slack_is_exact(slack_world: SlackWorld, typed: float, given: int) -> None:
    suspension, message = await show(slack_world, call_with(WHOLE))
    await submit(slack_world, message, "value", Value=str(typed))
    assert await redeem(slack_world.world, suspension) == f'{{"account": {given}}}'


@pytest.mark.parametrize(("action", "tool", "label"), [("value", "pay", "Value"), ("edit", "log_in", "account")])
async def test_password_typed_in_slack_is_masked_everywhere(
    slack_world: SlackWorld, action: str, tool: str, label: str
) -> None:
    suspension, message = await show(slack_world, call_with(SECRET, tool, login="ann"))
    await submit(slack_world, message, action, **{label: TYPED})
    assert json.loads(await redeem(slack_world.world, suspension)) == {"account": TYPED, "login": "ann"}
    shown = [json.dumps([one.blocks, one.text]) for one in slack_world.slack.messages]
    shown += [json.dumps(slack_world.slack.responses), *await read_views(slack_world.world, suspension)]
    assert [text for text in shown if TYPED in text] == []
    assert MASK in shown[-1]
