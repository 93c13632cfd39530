"""Collect AFK's events and tell Sayso of them, each once however often that is tried."""

import dataclasses
import json
import logging
from typing import Any

from pydantic import JsonValue

from sayso.client import AsyncClient
from sayso.clock import iso_utc, new_id, now_ms
from sayso.decisions import JsonObject
from sayso.errors import SaysoError
from sayso.exchanges import Exchange
from sayso.flows import send
from sayso.replies import ToldSeen
from sayso.tools import plain_json

DIALECT = "afk"
_AT_ONCE = 500
_MOST = 2_000
_LONGEST_CHARS = 40_000
_LOG = logging.getLogger("sayso")


@dataclasses.dataclass(frozen=True)
class Told:
    """An event as AFK wrote it, and when it came."""

    event: JsonObject
    at: str


class Tellings:
    """The events of some stretch of a run; they are numbered under a name of their own."""

    def __init__(self) -> None:
        self.events: list[Told] = []
        self._source = new_id("afk")
        self._sent: dict[str, int] = {}

    def note(self, event: Any) -> None:
        """Keep an event; of one that is too long, and of too many, the rest is left out."""
        if len(self.events) < _MOST:
            self.events.append(Told(_write(event), iso_utc(now_ms())))

    def write(self, first: int = 0) -> tuple[JsonObject, ...]:
        """Return the events from this one on as bodies of `POST /api/v1/runs/{run_id}/events`."""
        numbered: list[JsonValue] = [
            {"seq": seq, "at": one.at, "event": one.event} for seq, one in enumerate(self.events, start=1)
        ]
        some = [numbered[at : at + _AT_ONCE] for at in range(first, len(numbered), _AT_ONCE)]
        return tuple({"dialect": DIALECT, "source": self._source, "events": one} for one in some)

    async def send(self, client: AsyncClient, run_id: str) -> None:
        """Tell of what this run was not told of yet; what cannot be told is logged, for the run goes on without."""
        path, until = f"/api/v1/runs/{run_id}/events", len(self.events)
        try:
            for body in self.write(self._sent.get(run_id, 0)):
                await client.run(send(client.patience, Exchange("POST", path, ToldSeen, body=body)))
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
    if len(json.dumps(data)) > _LONGEST_CHARS:
        data = {"left_out": "The event's data is too long to be shown."}
    return {**{name: value for name, value in written.items() if value is not None}, "data": data}
