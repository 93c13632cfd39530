"""Proposals of grants, made from the latest decisions of people."""

from collections.abc import Sequence

import structlog

from sayso.core.policy.counters.readings import name_scope
from sayso.core.records.decisions import Actor
from sayso.core.records.permissions import Grant
from sayso.core.transitions.deciding import find_item
from sayso.features.permissions.judging import find_learned, learns, suspend_grants
from sayso.features.permissions.learning import Answered, Lesson, propose_grants, read_lesson
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting
from service.features.permissions.lessons import Place

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
    for scope in await wiring.feature(Granting).lessons.take_scopes(_AT_ONCE):
        now_ms = await wiring.feature(Granting).now_ms()  # before the lessons are read: one that is not read is later
        lessons = await _read_lessons(wiring, await wiring.feature(Granting).lessons.list_items(scope))
        made += await _learn(wiring, lessons, now_ms) if lessons else []
    return made


async def reinstate(wiring: Wiring, grant_id: str, by: Actor) -> Grant:
    """Overrule the denial that suspends a learned grant, as a person who has read it.

    If people denied another call that it covers since it was proposed, it stays suspended by that one. Raises what
    `Granting.reinstate` raises.
    """
    known = (await wiring.feature(Granting).find_use(grant_id)).grant
    lessons = await _read_lessons(
        wiring, await wiring.feature(Granting).lessons.list_items(name_scope(known.rule_id, known.agent))
    )
    begun_ms = known.learned.proposed_at_ms if known.learned is not None else 0
    denials = [
        lesson.denial
        for lesson in lessons
        if lesson.denial is not None
        and lesson.at_ms >= begun_ms
        and find_learned([known], lesson.rule_id, lesson.event)
    ]
    return await wiring.feature(Granting).reinstate(grant_id, by, denials)


async def _learn(wiring: Wiring, lessons: Sequence[Lesson], now_ms: int) -> list[Grant]:
    """Propose grants; `lessons` are those of one rule for one agent."""
    store, last = wiring.feature(Granting).lessons, lessons[-1]
    known = [grant for grant in await store.list_learned() if grant.rule_id == last.rule_id]
    await _suspend_denied(wiring, known, lessons)
    rule = next((rule for rule in wiring.rules.policy().rules if rule.rule_id == last.rule_id), None)
    if rule is None:
        return []
    made = [grant for grant in propose_grants(rule, lessons, known, now_ms) if await store.propose(grant)]
    for grant in made:
        _LOG.info("grant_proposed", grant=grant.id, rule=grant.rule_id, agent=grant.agent, tool=grant.tool)
    return made


async def _suspend_denied(wiring: Wiring, known: Sequence[Grant], lessons: Sequence[Lesson]) -> None:
    """Suspend grants that a denial has missed, because it was sent while they were proposed."""
    for lesson in lessons:
        if lesson.denial is None:
            continue
        prior = (grant for grant in known if grant.learned is not None and lesson.at_ms >= grant.learned.proposed_at_ms)
        free = (grant for grant in prior if grant.denial is None and not grant.has_overruled(lesson.denial))
        missed = find_learned(free, lesson.rule_id, lesson.event)
        await wiring.feature(Granting).lessons.suspend(suspend_grants(missed, lesson.denial))


async def _read_lessons(wiring: Wiring, places: Sequence[Place]) -> list[Lesson]:
    """Return the lessons at these places; none before one that is gone, erased or deleted, and was no approval."""
    lessons: list[Lesson] = []
    for begin in range(0, len(places), _RECORDS):
        page = places[begin : begin + _RECORDS]
        wanted = [*dict.fromkeys(place.suspension_id for place in page)]
        records = {record.id: record for record in await wiring.desk.suspensions.read_many(wanted)}
        for place in page:
            record = records.get(place.suspension_id)
            if record is not None and record.erasure is not None:
                record = None
            if record is None and place.answer != Answered.APPROVED:
                lessons.clear()
            lesson = read_lesson(record, find_item(record, place.item_id)) if record is not None else None
            lessons += [lesson] if lesson is not None else []
    return lessons
