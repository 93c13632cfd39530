"""Socket Mode: the same decisions without a public address, by one process, through broken sockets."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.channels.base import DeliveryFailed
from service.channels.slack.answering import listen
from service.channels.slack.outbound import SlackChannel
from tests.builders import approve
from tests.fakes.slack import FakeSlack, sign
from tests.fakes.slack_api import ANNA
from tests.service.channels.slack.worlds import NAME, SlackWorld, config_of, socket_fields
from tests.waits import until
from workers.notify.notifier import listen_by_lease


@pytest.fixture
def channel_fields(slack: FakeSlack) -> dict[str, Any]:
    return socket_fields(slack)


@pytest.fixture
async def listening(slack_world: SlackWorld) -> AsyncIterator[asyncio.Task[None]]:
    """The listener of the app's channel, connected."""
    ending = asyncio.Event()
    task = asyncio.create_task(listen(slack_world.channel, slack_world.world.wiring, ending))
    await until(lambda: connected(slack_world.slack))
    yield task
    ending.set()
    await task


async def connected(slack: FakeSlack, times: int = 1) -> bool:
    return slack.opened >= times and bool(slack.sockets)


async def push(slack_world: SlackWorld, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    ack = await slack_world.slack.push(kind, payload)
    await slack_world.channel.background.finish()
    return ack


@pytest.mark.usefixtures("listening")
async def test_press_over_the_socket_decides(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    ack = await push(slack_world, "interactive", slack_world.slack.press(message, "sayso:approve"))
    assert set(ack) == {"envelope_id"}
    outcome = (await slack_world.read(record)).outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.by.id, outcome.by.channel) == ("approved", "anna", NAME)


@pytest.mark.usefixtures("listening")
async def test_modal_command_and_event_over_the_socket(slack_world: SlackWorld) -> None:
    code = (await slack_world.world.wiring.contacts.create_code("anna", NAME)).code
    ack = await push(slack_world, "slash_commands", slack_world.slack.command(f"link {code}"))
    assert ack["payload"]["text"] == "Linked to anna. You can now decide here."
    record, message = await slack_world.ask()
    await push(slack_world, "interactive", slack_world.slack.press(message, "sayso:edit"))
    view = slack_world.slack.modal()
    ack = await push(slack_world, "interactive", slack_world.slack.submit(view, amount="x"))
    assert ack["payload"]["response_action"] == "errors"
    await push(slack_world, "interactive", slack_world.slack.submit(view, amount="9"))
    assert not (await slack_world.read(record)).open
    slack_world.slack.homes.clear()
    event = {"type": "app_home_opened", "user": ANNA, "tab": "home"}
    await push(slack_world, "events_api", slack_world.slack.event(event))
    assert "Nothing waits for you" in json.dumps(slack_world.slack.homes[ANNA])


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("change", [{"api_app_id": "A0OTHER"}, {"team": {"id": "T0OTHER"}}, {"actions": None}])
async def test_envelope_of_another_app_is_acknowledged_without_effect(
    slack_world: SlackWorld, change: dict[str, Any]
) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    payload = {**slack_world.slack.press(message, "sayso:approve"), **change}
    assert set(await push(slack_world, "interactive", payload)) == {"envelope_id"}
    assert (await slack_world.read(record)).open


@pytest.mark.usefixtures("listening")
async def test_late_press_over_the_socket_is_told_who_was_first(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    await approve(slack_world.world.wiring, record, "root")
    await push(slack_world, "interactive", slack_world.slack.press(message, "sayso:approve"))
    assert slack_world.slack.responses[0]["text"].startswith("root approved this over api at ")


@pytest.mark.usefixtures("listening")
async def test_repeated_envelope_decides_once(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    payload = slack_world.slack.press(message, "sayso:approve")
    for _ in range(3):
        await push(slack_world, "interactive", payload)
    assert len((await slack_world.read(record)).decisions) == 1
    assert len({one["envelope_id"] for one in slack_world.slack.acks}) == len(slack_world.slack.acks)


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("politely", [True, False])
async def test_socket_that_ends_is_opened_again(slack_world: SlackWorld, politely: bool) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    await asyncio.to_thread(slack_world.slack.drop_sockets, politely=politely)
    await until(lambda: connected(slack_world.slack, 2))
    await push(slack_world, "interactive", slack_world.slack.press(message, "sayso:approve"))
    assert not (await slack_world.read(record)).open


async def test_listener_by_lease_goes_on_after_a_refusal(slack_world: SlackWorld) -> None:
    slack_world.slack.refuse(500)
    stopping = asyncio.Event()
    work = listen_by_lease(slack_world.world.wiring, slack_world.channel, listen, stopping, 0.05)
    task = asyncio.create_task(work)

    async def refused() -> bool:
        return slack_world.slack.calls.count("apps.connections.open") >= 2

    await until(refused)
    slack_world.slack.refuse(0)
    await until(lambda: connected(slack_world.slack))
    stopping.set()
    await task
    await until(lambda: gone(slack_world.slack))


async def gone(slack: FakeSlack) -> bool:
    return not slack.sockets


async def test_wrong_app_token_is_an_error(slack_world: SlackWorld, slack: FakeSlack) -> None:
    channel = SlackChannel(config_of(slack, signing_secrets=[], app_token="xapp-wrong"))
    with pytest.raises(DeliveryFailed) as failed:
        await listen(channel, slack_world.world.wiring, asyncio.Event())
    await channel.aclose()
    assert "xapp-wrong" not in failed.value.reason


async def test_channel_without_an_app_token_needs_no_listener(slack_world: SlackWorld, slack: FakeSlack) -> None:
    channel = SlackChannel(config_of(slack))
    await listen(channel, slack_world.world.wiring, asyncio.Event())
    assert "apps.connections.open" not in slack.calls


async def test_channel_without_signing_secrets_takes_no_requests(slack_world: SlackWorld) -> None:
    answer = await slack_world.post("events", b"{}", sign(b"{}"))
    assert answer.status_code == 404
