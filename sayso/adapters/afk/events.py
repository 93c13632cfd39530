"""Collect AFK's events and tell Sayso of them, each once however often that is tried."""

import dataclasses
import logging
from datetime import UTC, datetime
from typing import Any

from sayso.adapters.afk.classes import POLICY_ID
from sayso.canonical_json import JsonObject
from sayso.client import AsyncClient
from sayso.clock import new_id, now_ms
from sayso.errors import SaysoError
from sayso.runner.tools import plain_json
from sayso.timeline.limits import MOST_AT_ONCE, fit_events
from sayso.timeline.sources import SourceFormat

_MOST = 2_000
_OUR_DENIAL = ("deny", POLICY_ID)
_LOG = logging.getLogger("sayso")


@dataclasses.dataclass(frozen=True)
class Told:
    """An event as AFK wrote it, and when it came."""

    event: JsonObject
    at: datetime


class ExternalEvents:
    """The events of some stretch of a run; they are numbered under a name of their own."""

    def __init__(self) -> None:
        self.events: list[Told] = []
        self._source = new_id("afk")
        self._sent: dict[str, int] = {}

    def note(self, event: Any) -> None:
        """Keep an event; of too many the rest is left out, and so are denials that Sayso's own trail tells of."""
        data = event.data or {}
        if event.type == "policy_decision" and (data.get("action"), data.get("policy_id")) == _OUR_DENIAL:
            return
        if len(self.events) < _MOST:
            self.events.append(Told(_write(event), datetime.fromtimestamp(now_ms() / 1000, UTC)))

    @property
    def said(self) -> tuple[JsonObject, ...]:
        """The events alone."""
        return tuple(one.event for one in self.events)

    async def send(self, client: AsyncClient, run_id: str) -> None:
        """Tell of what this run was not told of yet; what cannot be told is logged, for the run goes on without."""
        until = len(self.events)
        try:
            for first in range(self._sent.get(run_id, 0), until, MOST_AT_ONCE):
                some = self.events[first : min(until, first + MOST_AT_ONCE)]
                told, moments = fit_events(one.event for one in some), [one.at for one in some]
                await client.report_events(
                    run_id, SourceFormat.AFK, told, source=self._source, first_seq=first + 1, at=moments
                )
        except SaysoError as error:
            _LOG.warning("AFK's events could not be told to %s: %s", run_id, error.message)
            return
        self._sent[run_id] = until


def _write(event: Any) -> JsonObject:
    written = {name: getattr(event, name, None) for name in ("type", "run_id", "thread_id", "state", "step", "message")}
    try:
        data = plain_json(getattr(event, "data", None) or {})
    except SaysoError as error:
        data = {"left_out": error.message}
    return {**{name: value for name, value in written.items() if value is not None}, "data": data}
