"""External events of runs. They are limited, deduplicated, and deleted with the run."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import canonical_json, digest_json
from sayso.errors import IdempotencyConflict, NotFound, TooLarge, Unreadable
from sayso.timeline.external_events import StoredEvent
from service.core.store.connection.connecting import name_shared, text
from service.core.store.keys import CHANGES
from service.core.store.lua import read_script
from service.core.store.tenants import TenantStore

MOST_EVENTS = 5_000
MOST_BYTES = 4 * 1024 * 1024  # limits of one run
_SCRIPT = read_script("append")
_EVENT = "external event"
_THERE, _NO_RUN, _OTHER, _TOO_MANY, _TOO_MUCH = range(5)


class ExternalEvent(NamedTuple):
    """One event with its number at its source."""

    seq: int
    said_at_ms: int | None
    event: dict[str, JsonValue]


class Appended(NamedTuple):
    """The number of new events of a request, and of all events of the run."""

    added: int
    kept: int


class EventPage(NamedTuple):
    """Some of a run's events, without unreadable ones, and the position to read on after."""

    events: list[StoredEvent]
    position: int


class ExternalEvents:
    """External events in order of arrival."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings
        self._sealer = store.sealer
        self._append = store.redis.register_script(_SCRIPT)

    async def add(
        self, run_id: str, source: str, source_format: str, external_events: Sequence[ExternalEvent]
    ) -> Appended:
        """Save new events, all or none; raises `NotFound`, `IdempotencyConflict`, and `TooLarge` over the limits."""
        keys = self._keys
        args: list[str | int | bytes] = [MOST_EVENTS, MOST_BYTES, name_shared(self._redis, CHANGES + run_id)]
        for event in external_events:
            said = "" if event.said_at_ms is None else event.said_at_ms
            head = f"{source}|{source_format}|{event.seq}|{said}|".encode()
            digest = digest_json([source_format, event.said_at_ms, event.event])
            name, content = f"{source} {event.seq}", canonical_json(event.event)
            args += [name, digest[:32], head + self._sealer.seal(_EVENT, content.decode(), run_id, name).encode()]
        verdict, *facts = await self._append(
            keys=[keys.run(run_id), keys.external_events(run_id), keys.external_events_seen(run_id)], args=args
        )
        fact = int(facts[0]) if facts else 0
        if verdict == _NO_RUN:
            raise NotFound(f"There is no run {run_id!r} for this credential.")
        if verdict == _OTHER:
            seq = external_events[fact].seq
            raise IdempotencyConflict(
                f"Event {seq} of {source!r} is saved with other content; nothing of this request was saved. "
                "Send the same event under the same number, and a new one under the next number.",
                source=source,
                seq=seq,
            )
        if verdict == _TOO_MANY:
            raise TooLarge(
                f"The run has {fact} events of {MOST_EVENTS}; these do not fit. Send fewer, such as whole messages "
                "instead of their fragments.",
                kept=fact,
            )
        if verdict == _TOO_MUCH:
            raise TooLarge(
                f"The run has {fact} bytes of events of {MOST_BYTES}; these do not fit. Send fewer.", kept=fact
            )
        return Appended(int(facts[0]), int(facts[1]))

    async def read(self, run_id: str, after: int = 0, limit: int = 200) -> EventPage:
        """Return up to `limit` events after the first `after`."""
        raws = await self._redis.lrange(self._keys.external_events(run_id), after, after + limit - 1)
        numbered = enumerate(map(text, raws), start=after + 1)
        named = ((f"event {number} of {run_id}", self._unpack(run_id, raw, number)) for number, raw in numbered)
        return EventPage(self._readings.read_others(StoredEvent, named), after + len(raws))

    async def read_all(self, run_id: str) -> list[StoredEvent]:
        return (await self.read(run_id, limit=MOST_EVENTS)).events

    def _unpack(self, run_id: str, raw: str, position: int) -> str:
        """Return an event as JSON; the text itself if it has another form or cannot be decrypted."""
        parts = raw.split("|", 5)
        if len(parts) != 6:
            return raw
        time, source, source_format, seq, said, stored = parts
        try:
            event = self._sealer.open(_EVENT, stored, run_id, f"{source} {seq}")
        except Unreadable:
            return raw
        return (
            f'{{"position":{position},"at_ms":{time},"source":"{source}","source_format":"{source_format}","seq":{seq},'
            f'"said_at_ms":{said or "null"},"event":{event}}}'
        )
