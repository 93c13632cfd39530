"""Collects AFK's events and sends each to Sayso once, even if sending is retried."""

import dataclasses
import logging
from datetime import UTC, datetime
from typing import Any

from sayso.adapters.afk.tools import POLICY_ID
from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id, now_ms
from sayso.errors import SaysoError
from sayso.runner.tools import plain_json
from sayso.timeline.external_events import MAX_BATCH_EVENTS, fit_events
from sayso.timeline.sources import SourceFormat

_MAX_EVENTS = 2_000
_OUR_DENIAL = ("deny", POLICY_ID)
_LOG = logging.getLogger("sayso")


@dataclasses.dataclass(frozen=True)
class TimedEvent:
    """An AFK event and the time it was received."""

    event: JsonObject
    at: datetime


class ExternalEvents:
    """The events of a segment of a run, numbered within a source of their own."""

    def __init__(self) -> None:
        self.events: list[TimedEvent] = []
        self._source = new_id("afk")
        self._sent: dict[str, int] = {}

    def note(self, event: Any) -> None:
        """Keep an event, up to a limit. Sayso's own denials are skipped: they are in its trail."""
        data = event.data or {}
        if event.type == "policy_decision" and (data.get("action"), data.get("policy_id")) == _OUR_DENIAL:
            return
        if len(self.events) < _MAX_EVENTS:
            self.events.append(TimedEvent(_write(event), datetime.fromtimestamp(now_ms() / 1000, UTC)))

    @property
    def raw(self) -> tuple[JsonObject, ...]:
        return tuple(timed.event for timed in self.events)

    async def send(self, client: AsyncClient, run_id: str) -> None:
        """Send new events to the run's timeline. A failure is logged, and the run continues."""
        until = len(self.events)
        try:
            for first in range(self._sent.get(run_id, 0), until, MAX_BATCH_EVENTS):
                batch = self.events[first : min(until, first + MAX_BATCH_EVENTS)]
                events, times = fit_events(timed.event for timed in batch), [timed.at for timed in batch]
                await client.report_events(
                    run_id, SourceFormat.AFK, events, source=self._source, first_seq=first + 1, at=times
                )
        except SaysoError as error:
            _LOG.warning("AFK's events of run %s were not sent: %s", run_id, error.message)
            return
        self._sent[run_id] = until


def _write(event: Any) -> JsonObject:
    written = {name: getattr(event, name, None) for name in ("type", "run_id", "thread_id", "state", "step", "message")}
    try:
        data = plain_json(getattr(event, "data", None) or {})
    except SaysoError as error:
        data = {"left_out": error.message}
    return {**{name: value for name, value in written.items() if value is not None}, "data": data}
