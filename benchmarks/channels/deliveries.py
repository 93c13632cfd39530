"""Measure escalation while providers refuse, hang, or accept and drop: `make bench ARGS=--deliveries`.

Items arrive at a fixed rate. Each is sent to one reviewer over a provider that fails in one way, then to the next
step's reviewer, over a provider that works or over the same one. Nobody decides, and `fallback: approve` ends each.
A provider that accepts a message and shows it to nobody has proven its delivery. One that drops the connection has not.
"""

import asyncio
import re
import socket
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from benchmarks.channels.installations import Row, link, opened, report, running_channels
from benchmarks.channels.receivers import Arrival, Behaviour, Program, read_request, serving_all, write_body
from benchmarks.fills import suspend_polled
from benchmarks.measures import quantile
from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.records.decisions import Verdict
from sayso.core.records.events import EventType
from sayso.core.records.suspensions import SuspensionRecord
from service.core.logs import configure_logs
from service.core.wiring import Wiring

ITEMS = 10_000
PER_S = 50
NEXT_STEP_P99_MS = 5_000.0
TIMEOUT_S = 60
"""Longer than any attempt, so that no step is asked by its time while a delivery is under way."""

_STEP_S = 45
_PATIENCE_S = 120.0
_PAGE = 200
_FAILING: tuple[Behaviour, ...] = ("500", "429", "never", "1 byte/s", "reset", "half", "not http")
_ACCEPTS: Behaviour = "well"
_CLOSED = "nobody listens"
_BOT = "123456:AAE-token_of_a_bot_for_benchmarks"
_NAME = re.compile(rb"item-\d{6}")


@dataclass
class Bot(Program):
    """A provider with Telegram's API; `messages` has the first one of each item and chat."""

    messages: dict[tuple[str, int], Arrival] = field(default_factory=dict)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        arrival = await read_request(reader)
        if arrival.path.endswith("/getUpdates"):
            await asyncio.wait_for(reader.read(), None)
            return False
        found = _NAME.search(arrival.raw)
        if found is not None:
            self.messages.setdefault((found[0].decode(), int(arrival.body["chat_id"])), arrival)
        try:
            await self.behave(reader, writer, write_body({"ok": True, "result": {"message_id": 1}}))
        finally:
            arrival.ended_at_ms = now_ms()
        return False


class Way(NamedTuple):
    """How the first provider of an item fails, and whether the next step has a provider that works."""

    number: int
    first: str
    saved: bool

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of its channels; on the second one only the next reviewer has an address."""
        return (f"first-{self.number}", f"next-{self.number}")[: 1 + self.saved]

    @property
    def chats(self) -> tuple[int, int]:
        """The addresses of its first and its next reviewer."""
        return 1_000 + self.number, 2_000 + self.number

    @property
    def rule(self) -> dict[str, Any]:
        """Its rule in the policy."""
        steps = [{"after_s": _STEP_S, "reviewers": [f"b{self.number}"]}]
        return {
            "id": f"way-{self.number}",
            "tool": "refund",
            "when": f"args.amount == {self.number}",
            "action": "request_approval",
            "reason": "Refunds need approval",
            "terms": {
                "timeout_s": TIMEOUT_S,
                "reviewers": [f"a{self.number}"],
                "escalate": steps,
                "channels": [*self.channels],
                "unattended_approval": True,
                "fallback": {"action": "approve"},
            },
        }


WAYS = tuple(
    Way(number, first, saved)
    for number, (first, saved) in enumerate(
        (one, two) for one in (*_FAILING, _CLOSED, _ACCEPTS) for two in (True, False)
    )
)


@dataclass
class Providers:
    """The programs behind the channels, by the channels' names; none where nobody listens."""

    bots: dict[str, Bot] = field(default_factory=dict)
    channels: dict[str, Any] = field(default_factory=dict)

    async def serve(self, until: AsyncExitStack) -> None:
        """Serve a bot for each channel."""
        for way in WAYS:
            for name, behaviour in zip(way.channels, (way.first, _ACCEPTS), strict=False):
                if behaviour != _CLOSED:
                    self.bots[name] = Bot(behaviour)  # type: ignore[arg-type]
        await until.enter_async_context(serving_all([*self.bots.values()]))
        closed = until.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))  # it does not listen, so its port refuses connections
        for name in (name for way in WAYS for name in way.channels):
            port = self.bots[name].port if name in self.bots else closed.getsockname()[1]
            self.channels[name] = {"kind": "telegram", "bot_token": _BOT, "base_url": f"http://127.0.0.1:{port}"}

    def find(self, channel: str, item: str, chat: int) -> Arrival | None:
        """Return the first message about an item that reached a chat of a channel."""
        return self.bots[channel].messages.get((item, chat)) if channel in self.bots else None

    def accepted(self, way: Way, item: str, before_ms: int) -> bool:
        """Return whether a provider accepted a message about an item before this moment."""
        found = [
            self.find(name, item, chat)
            for name in way.channels
            for chat in way.chats
            if name in self.bots and self.bots[name].behaviour == _ACCEPTS
        ]
        return any(one is not None and one.at_ms <= before_ms for one in found)


class Escalation(NamedTuple):
    """When a delivery failed, when the next step was asked, and when its card arrived; 0 if nobody accepts it."""

    failed_at_ms: int
    asked_at_ms: int
    arrived_at_ms: int


@dataclass
class Findings:
    """What became of the items."""

    approved: int = 0
    unproven: int = 0
    denied: int = 0
    open: int = 0
    escalations: list[Escalation] = field(default_factory=list)
    without_step: int = 0

    def rows(self) -> list[Row]:
        """Return the figures with their bounds."""
        asked = [float(one.asked_at_ms - one.failed_at_ms) for one in self.escalations]
        arrived = [float(one.arrived_at_ms - one.failed_at_ms) for one in self.escalations if one.arrived_at_ms]
        return [
            Row("items", self.approved + self.denied + self.open),
            Row("approved by silence", self.approved),
            Row("approved by silence without a proven delivery", self.unproven, 0),
            Row("denied, because nobody was reached", self.denied),
            Row("still open", self.open, 0),
            Row("failed deliveries with a next step", len(self.escalations)),
            Row("failed deliveries whose next step was not asked", self.without_step, 0),
            Row("from a failed delivery to the next step p50, ms", quantile(asked, 0.5)),
            Row("from a failed delivery to the next step p99, ms", quantile(asked, 0.99), NEXT_STEP_P99_MS),
            Row("from a failed delivery to the next card p50, ms", quantile(arrived, 0.5)),
            Row("from a failed delivery to the next card p99, ms", quantile(arrived, 0.99), NEXT_STEP_P99_MS),
        ]


async def measure(home: Path, count: int) -> list[Row]:
    """Ask about the items, wait until all are closed, and return the figures."""
    providers = Providers()
    async with AsyncExitStack() as until:
        await providers.serve(until)
        policy = {"version": 1, "default": "deny", "rules": [way.rule for way in WAYS]}
        stack = until.enter_context(running_channels(home, providers.channels, policy))
        wiring = await until.enter_async_context(opened(stack))
        for way in WAYS:
            first, second = way.chats
            await link(wiring, f"a{way.number}", {way.channels[0]: str(first)})
            await link(wiring, f"b{way.number}", {way.channels[-1]: str(second)})
        ids = await _ask(wiring, count)
        await _await_closed(wiring)
        return (await _find(wiring, providers, ids)).rows()


async def _ask(wiring: Wiring, count: int) -> list[str]:
    """Ask about the items at their rate; return the suspensions in order."""
    began_ms, asking = monotonic_ms(), []
    for number in range(count):
        await asyncio.sleep((began_ms + number * 1000 / PER_S - monotonic_ms()) / 1000)
        asking.append(asyncio.create_task(suspend_polled(wiring, _name(number), amount=_way(number).number)))
    return [one.id for one in await asyncio.gather(*asking)]


async def _await_closed(wiring: Wiring) -> None:
    until_ms = monotonic_ms() + (TIMEOUT_S + _PATIENCE_S) * 1000
    while await wiring.runs.inbox(0, 1) and monotonic_ms() < until_ms:  # noqa: ASYNC110  the clock closes them
        await asyncio.sleep(0.5)


async def _find(wiring: Wiring, providers: Providers, ids: Sequence[str]) -> Findings:
    findings = Findings()
    for start in range(0, len(ids), _PAGE):
        records = await wiring.desk.suspensions.read_many([*ids[start : start + _PAGE]])
        for number, record in enumerate(records, start):
            await _add(findings, wiring, providers, number, record)
    return findings


async def _add(findings: Findings, wiring: Wiring, providers: Providers, number: int, record: SuspensionRecord) -> None:
    way, name, outcome = _way(number), _name(number), record.items[0].outcome
    if outcome is None:
        findings.open += 1
    elif outcome.verdict is Verdict.APPROVED:
        findings.approved += 1
        findings.unproven += not providers.accepted(way, name, outcome.at_ms)
    else:
        findings.denied += 1
    if way.first == _ACCEPTS:
        return
    trail = await wiring.runs.trail(record.run.id)
    failures = [
        one.at_ms for one in trail if one.type == EventType.CARD_FAILED and one.data["channel"] == way.channels[0]
    ]
    asked = [one.at_ms for one in trail if one.type == EventType.ESCALATED]
    if not failures or not asked:
        findings.without_step += 1
        return
    first, second = way.chats
    tried = providers.find(way.channels[0], name, first)  # a later message is a repetition
    failed_at_ms = tried.ended_at_ms if tried is not None and tried.at_ms < failures[0] else failures[0]
    arrived = providers.find(way.channels[1], name, second) if way.saved else None
    arrived_at_ms = arrived.at_ms if arrived is not None else 0
    findings.without_step += way.saved and arrived is None
    findings.escalations.append(Escalation(failed_at_ms, asked[0], arrived_at_ms))


def _way(number: int) -> Way:
    return WAYS[number % len(WAYS)]


def _name(number: int) -> str:
    return f"item-{number:06}"


def main(scale: float) -> int:
    """Measure, print, and return 1 if a bound is broken."""
    configure_logs("benchmark", "error")
    with tempfile.TemporaryDirectory(prefix="sayso-deliveries-") as folder:
        return report(uvloop.run(measure(Path(folder) / "home", max(len(WAYS), round(ITEMS * scale)))))
