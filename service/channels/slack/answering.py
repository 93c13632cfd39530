"""Answers to Slack within its three seconds, for HTTP and Socket Mode alike; longer work goes on afterwards.

A press needs no answer but an empty one, so it is answered before its work begins, whether or not the store is there.
"""

import asyncio
from typing import Any

from pydantic import JsonValue

from sayso.errors import InvalidInput
from service.channels.slack.acting import BROKEN, SlackDesk
from service.channels.slack.requests.payloads import (
    BlockActions,
    Command,
    EventCallback,
    Presser,
    Verification,
    ViewSubmission,
    check_origin,
    read_payload,
    source_of,
    type_of,
)
from service.channels.slack.screens.blocks import Block
from service.channels.slack.screens.views import result_modal

ANSWER_S = 2.0
"""How long the answer to a form or a command waits for the desk. Slack shows an error after 3 s."""

_WAITING = "What you sent is being recorded. The result appears here."
_RECORDED = "Your decision is recorded."


async def answer_interaction(desk: SlackDesk, payload: JsonValue, wait_s: float = ANSWER_S) -> Block | None:
    """Carry out a press or a submission; return the body of the answer, None for an empty one.

    Raises `InvalidInput` and `NotAllowed` for a payload that is not the channel's own.
    """
    kind = type_of(payload)
    if kind == "block_actions":
        pressed = read_payload(BlockActions, payload)
        check_origin(desk.channel.config, source_of(pressed), pressed.user)
        desk.channel.background.later(desk.press(pressed))
        return None
    if kind != "view_submission":
        return None
    sent = read_payload(ViewSubmission, payload)
    check_origin(desk.channel.config, source_of(sent), sent.user)
    submitting = desk.channel.background.start(desk.submit(sent))
    if await _wait(submitting, wait_s):
        return submitting.result()
    desk.channel.background.later(_show_late(desk, sent.view.id, submitting))
    return {"response_action": "update", "view": result_modal(_WAITING)}


async def answer_command(desk: SlackDesk, fields: Any, wait_s: float = ANSWER_S) -> Block:
    """Carry out `/sayso …`; return the sentence for its author."""
    sent = read_payload(Command, fields)
    check_origin(desk.channel.config, source_of(sent), Presser(id=sent.user_id))
    running = desk.channel.background.start(desk.run_command(sent))
    if await _wait(running, wait_s):
        return {"response_type": "ephemeral", "text": running.result()}
    desk.channel.background.later(_say_late(desk, sent.response_url, running))
    return {"response_type": "ephemeral", "text": "One moment…"}


def answer_event(desk: SlackDesk, payload: JsonValue) -> Block | None:
    """Take an event; return the answer to Slack's test of the address, None for any other."""
    if type_of(payload) == "url_verification":
        return {"challenge": read_payload(Verification, payload).challenge}
    if type_of(payload) != "event_callback":
        raise InvalidInput("This is no event of Slack. Send an event_callback.")
    sent = read_payload(EventCallback, payload)
    check_origin(desk.channel.config, source_of(sent))
    if sent.event.type == "app_home_opened" and sent.event.tab == "home" and sent.event.user:
        desk.channel.background.later(desk.show_home(sent.event.user))
    return None


async def _wait(task: asyncio.Task[Any], wait_s: float) -> bool:
    """Return whether the work is done in time; it goes on in any case, also if Slack hangs up."""
    done, _ = await asyncio.wait({task}, timeout=wait_s)
    if done:
        task.result()
    return bool(done)


async def _say_late(desk: SlackDesk, url: str, running: "asyncio.Task[str]") -> None:
    await desk.say(url, await running)


async def _show_late(desk: SlackDesk, view_id: str, submitting: "asyncio.Task[Block | None]") -> None:
    try:
        await desk.replace_modal(view_id, _describe(await submitting))
    except Exception:  # the modal must not wait forever; raised again because background work logs the fault
        await desk.replace_modal(view_id, BROKEN)
        raise


def _describe(answer: Block | None) -> str:
    """Return the sentence of an answer that comes too late to be one."""
    if answer is None:
        return _RECORDED
    if answer.get("response_action") == "errors":
        return "; ".join(map(str, answer["errors"].values()))
    rich = answer["view"]["blocks"][0]["elements"][0]
    return str(rich["elements"][0]["text"])
