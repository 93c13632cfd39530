"""Proposals of grants, made from the latest decisions of people."""

from collections.abc import Sequence

import structlog

from sayso.policy.learning.proposing import Answered, Lesson, propose_grants, read_lesson
from sayso.policy.learning.shadowing import find_learned, learns, suspend_grants
from sayso.records.memory.grants import Grant
from sayso.transitions.deciding import find_item
from service.store.memory.lessons import Place
from service.wiring import Wiring

_AT_ONCE = 20
_RECORDS = 50

_LOG = structlog.get_logger(__name__)


async def propose_learned(wiring: Wiring) -> list[Grant]:
    """Propose what the new decisions suggest, and return it; a proposal lets nothing run.

    After a crash, the next decision on a call of the same rule and agent makes up for what is missed.
    """
    if not learns(wiring.rules.policy().rules):
        return []
    made: list[Grant] = []
    for scope in await wiring.grants.lessons.take_scopes(_AT_ONCE):
        now_ms = await wiring.grants.now_ms()  # before the lessons are read: one that is not read is later
        lessons = await _read_lessons(wiring, await wiring.grants.lessons.list_items(scope))
        made += await _learn(wiring, lessons, now_ms) if lessons else []
    return made


async def _learn(wiring: Wiring, lessons: Sequence[Lesson], now_ms: int) -> list[Grant]:
    """Propose grants; `lessons` are those of one rule for one agent."""
    store, last = wiring.grants.lessons, lessons[-1]
    known = [one for one in await store.list_learned() if one.rule_id == last.rule_id]
    await _suspend_denied(wiring, known, lessons)
    rule = next((one for one in wiring.rules.policy().rules if one.rule_id == last.rule_id), None)
    if rule is None:
        return []
    made = [one for one in propose_grants(rule, lessons, known, now_ms) if await store.propose(one)]
    for one in made:
        _LOG.info("grant_proposed", grant=one.id, rule=one.rule_id, agent=one.agent, tool=one.tool)
    return made


async def _suspend_denied(wiring: Wiring, known: Sequence[Grant], lessons: Sequence[Lesson]) -> None:
    """Suspend grants that a denial has missed, because it was sent while they were proposed."""
    for lesson in lessons:
        if lesson.denial is None:
            continue
        lasting = (one for one in known if one.learned is not None and lesson.at_ms >= one.learned.proposed_at_ms)
        missed = find_learned((one for one in lasting if one.denial is None), lesson.rule_id, lesson.event)
        await wiring.grants.lessons.suspend(suspend_grants(missed, lesson.denial))


async def _read_lessons(wiring: Wiring, places: Sequence[Place]) -> list[Lesson]:
    """Return the lessons at these places; none before one that is gone, erased or deleted, and was no approval."""
    found: list[Lesson] = []
    for begin in range(0, len(places), _RECORDS):
        page = places[begin : begin + _RECORDS]
        wanted = [*dict.fromkeys(one.suspension_id for one in page)]
        records = {one.id: one for one in await wiring.desk.suspensions.read_many(wanted)}
        for place in page:
            record = records.get(place.suspension_id)
            if record is not None and record.erasure is not None:
                record = None
            if record is None and place.answer != Answered.APPROVED:
                found.clear()
            lesson = read_lesson(record, find_item(record, place.item_id)) if record is not None else None
            found += [lesson] if lesson is not None else []
    return found
