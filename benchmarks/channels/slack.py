"""Measure how soon Slack is answered while the store restarts: `make bench ARGS=--slack`.

Signed presses of Approve arrive at a fixed rate over HTTP, whether or not earlier ones are answered. In the middle the
store is stopped, and its supervisor starts it again. A time counts from when the press was due to be sent.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.channels.installations import Row, link, opened, report, running_channels
from benchmarks.clients import Clients
from benchmarks.fills import suspend_polled
from benchmarks.measures import quantile, repeat
from demo.stacks import Stack
from launch.programs import SERVER
from launch.server import is_ready
from launch.stops import wait_until
from sayso.core.clock import monotonic_ms
from sayso.core.records.decisions import Verdict
from sayso.core.records.suspensions import SuspensionRecord
from service.channels.cards import build_card
from service.channels.slack.card import render_card
from service.core.logs import configure_logs
from service.core.settings import socket_path
from service.core.wiring import Wiring
from tests.fakes.slack import FakeSlack, form_of, running_slack, sign
from tests.fakes.slack_api import ROOM, Message
from tests.service.channels.slack.worlds import NAME, fields_of

PER_S = 200
SECONDS = 60
ACK_P99_MS = 300.0
ACK_MOST_MS = 2_500.0
_PEOPLE = 10
_AT_ONCE = 16
_CONNECTIONS = 600
_PATIENCE_S = 30.0
_EFFECT_S = 120.0
_WARM_UP = 40
_PAGE = 200
_PATH = f"/channels/slack/{NAME}/interactions"
_POLICY = {"version": 1, "default": "request_approval", "rules": []}


class Press(NamedTuple):
    """A press of Approve on the card of a suspension, and the path of what is said to the presser."""

    suspension_id: str
    body: bytes
    response_path: str


class Answer(NamedTuple):
    """The time until a press was answered, and the status; 0 without an answer."""

    took_ms: float
    status: int


async def measure(stack: Stack, slack: FakeSlack, count: int) -> list[Row]:
    """Send the presses, restart the store in the middle, and return the figures."""
    async with opened(stack) as wiring:
        users = [slack.join(f"U0BENCH{number}") for number in range(_PEOPLE)]
        for number, user in enumerate(users):
            await link(wiring, f"reviewer{number}", {NAME: user})
        presses: list[Press] = []

        async def prepare(number: int) -> None:
            record = await suspend_polled(wiring, f"slack-{number}")
            presses.append(await _press(wiring, slack, record, users[number % _PEOPLE]))

        await repeat(_WARM_UP + count, _AT_ONCE, prepare)
        clients = await Clients.open(stack.port, {}, _CONNECTIONS)
        for press in presses[:_WARM_UP]:
            await _send_one(clients, press, monotonic_ms())
        presses = presses[_WARM_UP:]
        answers, away_s = await _send(stack, clients, presses)
        await clients.close()
        taken = [press for press, one in zip(presses, answers, strict=True) if one.status == 200]
        ended_ms = monotonic_ms()
        approved, silent = await _await_effects(wiring, slack, taken)
        after_s = (monotonic_ms() - ended_ms) / 1000
    acknowledged = [one.took_ms for one in answers if one.status == 200]
    return [
        Row("presses", count),
        Row("no store, s", away_s),
        Row("acknowledged", len(taken)),
        Row("not acknowledged", count - len(taken), 0),
        Row("acknowledgement p50, ms", quantile(acknowledged, 0.5)),
        Row("acknowledgement p99, ms", quantile(acknowledged, 0.99), ACK_P99_MS),
        Row("longest acknowledgement, ms", max(acknowledged), ACK_MOST_MS),
        Row("acknowledged and approved", approved),
        Row("acknowledged, not approved, and told why", len(taken) - approved - silent),
        Row("acknowledged without effect or reason", silent, 0),
        Row("last effect seen after the last press, s", after_s),
    ]


async def _press(wiring: Wiring, slack: FakeSlack, record: SuspensionRecord, user: str) -> Press:
    """Return a press on the card of a suspension, as Slack would send it."""
    definition = await wiring.runs.definition(record.items[0].tool.definition)
    body = render_card(build_card(record, record.items[0], definition, wiring.settings.public_url)).body
    message = Message(ROOM, f"16000.{record.id}", body["text"], body["blocks"])
    sent = slack.press(message, "sayso:approve", user)
    return Press(record.id, form_of(sent), sent["response_url"].removeprefix(slack.url))


async def _send(stack: Stack, clients: Clients, presses: Sequence[Press]) -> tuple[list[Answer], float]:
    """Send every press at its moment; return the answers, and how long the store was away."""
    began_ms = monotonic_ms() + 500
    restarting = asyncio.create_task(_restart_store(stack, began_ms + len(presses) / PER_S * 500))
    sending = []
    for number, press in enumerate(presses):
        due_ms = began_ms + number * 1000 / PER_S
        await asyncio.sleep((due_ms - monotonic_ms()) / 1000)
        sending.append(asyncio.create_task(_send_one(clients, press, due_ms)))
    return await asyncio.gather(*sending), await restarting


async def _send_one(clients: Clients, press: Press, due_ms: float) -> Answer:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            status = await clients.post(_PATH, press.body, sign(press.body))
    except (OSError, asyncio.IncompleteReadError):
        status = 0
    return Answer(monotonic_ms() - due_ms, status)


async def _restart_store(stack: Stack, at_ms: float) -> float:
    """Stop the store at this moment; return after how many seconds the next one answers."""
    await asyncio.sleep((at_ms - monotonic_ms()) / 1000)
    pid = next(one.pid for one in stack.programs() if one.name == SERVER.name)
    began_ms = monotonic_ms()
    os.kill(pid, signal.SIGTERM)
    await asyncio.to_thread(wait_until, lambda: not _runs(pid), _PATIENCE_S)
    await asyncio.to_thread(wait_until, lambda: is_ready(socket_path(stack.home)), _PATIENCE_S)
    return (monotonic_ms() - began_ms) / 1000


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def _await_effects(wiring: Wiring, slack: FakeSlack, taken: Sequence[Press]) -> tuple[int, int]:
    """Wait for the effects of acknowledged presses; return how many approved, and how many had none and no reason."""
    paths = {press.suspension_id: press.response_path for press in taken}
    silent, approved, until_ms = [*paths], 0, monotonic_ms() + _EFFECT_S * 1000
    while silent and monotonic_ms() < until_ms:
        pages = [silent[start : start + _PAGE] for start in range(0, len(silent), _PAGE)]
        records = [record for page in pages for record in await wiring.desk.suspensions.read_many(page)]
        done = {record.id for record in records if (end := record.items[0].outcome) and end.verdict is Verdict.APPROVED}
        approved += len(done)
        told = {one["path"] for one in slack.responses}
        silent = [one for one in silent if one not in done and paths[one] not in told]
        await asyncio.sleep(0.5)
    return approved, len(silent)


def main(scale: float) -> int:
    """Measure, print, and return 1 if a bound is broken."""
    configure_logs("benchmark", "error")
    count = round(PER_S * SECONDS * scale)
    with (
        tempfile.TemporaryDirectory(prefix="sayso-slack-") as folder,
        running_slack() as slack,
        running_channels(Path(folder) / "home", {NAME: fields_of(slack)}, _POLICY) as stack,
    ):
        return report(uvloop.run(measure(stack, slack, count)))
