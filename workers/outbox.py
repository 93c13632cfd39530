"""The outbox of commits: each announcement becomes one message for every endpoint that wants it; facts are counted."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

import structlog

from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import NotFound, SaysoError, Unavailable
from service.channels.webhook_events import build_event, find_announced
from service.core.logs import Trouble
from service.core.outgoing.http import EVENTS_RETRY_FOR_MS
from service.core.store.announcements import Announcement, Delivery
from service.core.store.deliveries import KEPT_MS, Deliveries
from service.core.store.precedents import Precedents
from service.core.wiring import Wiring
from service.features.control.store import Recents
from service.features.forecast.waits import Waits
from service.features.insights.attention import warn_tired
from service.features.insights.facts import Facts, PersonFact
from service.features.insights.store import Counters, tally
from service.features.webhooks.store import AnnouncementQueue, Endpoint, Endpoints

_UNREADABLE_AGAIN_MS = 60_000
_WAITS_MS = KEPT_MS // 2
"""How long an announcement waits for an unreadable endpoint. Others keep its messages longer, so none is sent twice."""


@dataclass
class FanOut:
    """Turns announcements into messages. After a crash the same messages are saved once more, without effect."""

    wiring: Wiring
    trouble: Trouble = field(default_factory=lambda: Trouble("event_not_announced"))

    async def announce_due(self) -> int:
        now_ms = await self.wiring.schedule.now_ms()
        due = await self.wiring.part(AnnouncementQueue).due(now_ms)
        endpoints = await self.wiring.part(Endpoints).list_all() if due else []
        whole = not due or len(endpoints) >= await self.wiring.part(Endpoints).count()
        done = await asyncio.gather(*(self._announce(*pair, endpoints, now_ms, whole) for pair in due))
        await self.wiring.part(AnnouncementQueue).remove(*(stored for stored in done if stored is not None))
        return len(due)

    async def _announce(
        self, stored: str, announcement: Announcement | None, endpoints: list[Endpoint], now_ms: int, whole: bool
    ) -> str | None:
        """Save the messages of an announcement; return its stored form, or None if it waits for another version."""
        if announcement is None:
            await self.wiring.part(AnnouncementQueue).defer(stored, now_ms + _UNREADABLE_AGAIN_MS)
            return None
        try:
            record = (await self.wiring.desk.suspensions.read(announcement.suspension_id)).record
            wanted = [endpoint for endpoint in endpoints if endpoint.wants(announcement.type, record.run.owner)]
            if wanted:
                await self._save(announcement, record, wanted, now_ms)
        except NotFound:
            return stored
        except Unavailable:
            raise
        except (SaysoError, ValueError) as error:
            self.trouble.note(error, announcement=announcement.id)
            await self.wiring.part(AnnouncementQueue).defer(stored, now_ms + _UNREADABLE_AGAIN_MS)
            return None
        if not whole and now_ms - announcement.at_ms < _WAITS_MS:
            await self.wiring.part(AnnouncementQueue).defer(stored, now_ms + _UNREADABLE_AGAIN_MS)
            return None
        return stored

    async def _save(
        self, announcement: Announcement, record: SuspensionRecord, wanted: list[Endpoint], now_ms: int
    ) -> None:
        definitions = await self.wiring.runs.find_definitions([record])
        item = find_announced(announcement, record)
        denied = await self.wiring.part(Precedents).find_denial(record, item) if item is not None else None
        url = self.wiring.settings.public_url
        body = await asyncio.to_thread(build_event, announcement, record, definitions, url, denied)
        if body is None:
            return
        messages = [
            Delivery(
                id=f"{announcement.id}.{endpoint.id}",
                endpoint_id=endpoint.id,
                event_id=announcement.id,
                type=announcement.type,
                subject=announcement.suspension_id,
                body=body,
                created_at_ms=announcement.at_ms,
                until_ms=now_ms + EVENTS_RETRY_FOR_MS,
            )
            for endpoint in wanted
        ]
        await self.wiring.part(Deliveries).add(messages, min(announcement.at_ms, now_ms))


_AT_ONCE = 200

log = structlog.get_logger()


@dataclass
class Counting:
    """Counts each fact once, in its hour and day, however many clocks count it and however often."""

    wiring: Wiring
    wait_calm: Callable[[], Awaitable[None]] | None = None

    async def count_waiting(self) -> int:
        """Count all facts that wait, a batch in each calm moment; return their number."""
        counted = 0
        while waiting := await self.wiring.part(Counters).waiting(_AT_ONCE):
            for entry in waiting:
                if entry.facts is None:
                    log.warning("facts_not_counted", stored=entry.stored[:200])
            facts = [entry.facts for entry in waiting if entry.facts is not None]
            await self._note_recent(facts)
            await self.wiring.part(Waits).add(facts)
            for fact in facts:
                await self.wiring.part(Recents).second_look.add_drawn(fact.drawable, fact.at_ms)
            names = {person.name for fact in facts for person in fact.people}
            zones = {name: ZoneInfo(await self.wiring.duty.find_time_zone(name)) for name in names}
            tallied = [(entry, tally(entry.facts, zones) if entry.facts is not None else {}) for entry in waiting]
            counted += await self.wiring.part(Counters).count(tallied)
            if self.wait_calm is not None:
                await self.wait_calm()
        return counted

    async def _note_recent(self, facts: Iterable[Facts]) -> None:
        by_name: dict[str, list[tuple[PersonFact, int]]] = defaultdict(list)
        for fact in facts:
            for person in fact.people:
                by_name[person.name].append((person, fact.at_ms))
                if person.drill:
                    await self.wiring.part(Recents).drills.add(person.name, [(person, fact.at_ms)])
        for name, decisions in by_name.items():
            await self.wiring.part(Recents).add(name, decisions)
            await warn_tired(self.wiring.part(Recents), name)
