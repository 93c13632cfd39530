"""Each fact counts once, in its hour and day, however often it is counted; the figures are those of the trail."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from redis.asyncio import Redis

from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.core.records.decisions import DecisionRequest, Shown
from sayso.core.records.events import TrailEntry
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.wire.people import Preferences
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.control.store import Recents
from service.features.insights.attention import find_warning
from service.features.insights.facts import Facts, ItemFact, Metric, Step
from service.features.insights.figures import RANGES, Insights, read_insights
from service.features.insights.store import Count, Counters, tally
from tests.builders import approve, ask, make_pending, person
from workers.clock.ticks import process_due
from workers.outbox import Counting

KEYS = TenantKeys(TENANT)
TWO = RuleTerms(quorum={"approve": 2})  # type: ignore[arg-type]
Fate = Literal["approved", "edited", "denied", "half", "late", "headless", "cancelled", "open"]
FIGURES = ("asked", "decided", "approved", "denied", "edited", "fallback")
FATES: tuple[Fate, ...] = ("approved", "edited", "denied", "half", "late", "headless", "cancelled", "open")


async def live(wiring: Wiring, fate: Fate) -> SuspensionRecord:
    """Ask about a call and let it meet its fate. An edit under the same rule is not asked again."""
    terms = TWO if fate == "half" else RuleTerms(timeout_s=0 if fate == "headless" else 60)
    draft = ask(terms=terms).model_copy(update={"rule_id": "ask-refund"})
    record = await make_pending(wiring, draft, late_ms=120_000 if fate == "late" else 0)
    if fate in ("approved", "half"):
        await approve(wiring, record)
    elif fate in ("edited", "denied"):
        await decide(wiring, record, fate)
    elif fate == "late":
        await process_due(wiring)
    elif fate == "cancelled":
        await wiring.desk.cancel(record.run.id, person("demo"))
    return record


async def decide(wiring: Wiring, record: SuspensionRecord, fate: Fate) -> None:
    args = {**record.items[0].tool.args, "amount": 7} if fate == "edited" else None
    action: Literal["approve", "deny"] = "approve" if fate == "edited" else "deny"
    request = DecisionRequest(action=action, digest=record.items[0].digest, args=args)
    await wiring.desk.decide(record.id, "i1", request, person("ben"))


async def count_trails(wiring: Wiring, records: list[SuspensionRecord]) -> dict[int, Counter[str]]:
    """Return the figures of each hour, recounted from all events of the trails."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for record in records:
        for event in await wiring.runs.trail(record.run.id):
            found[event.at_ms // HOUR_MS].update(list_counted(event))
    return {hour: counts for hour, counts in found.items() if counts}


def list_counted(event: TrailEntry) -> Iterator[str]:
    data = event.data
    if event.type == "run_paused":
        yield from ["asked"] * len(data["payload"]["items"])
    elif event.type == "decision_recorded":
        yield f"by {data['by']['id']}"
        if data["verdict"] is not None:
            yield from ("decided", data["verdict"])
        if data["edited"]:
            yield "edited"
    elif event.type == "timed_out":
        yield "fallback"


def sum_up(counted: Counter[Count]) -> Counter[str]:
    """Return the counts of all tools, and the decisions of each person."""
    found: Counter[str] = Counter()
    for (metric, name), count in counted.items():
        if metric in FIGURES:
            found[metric] += count
        elif metric == Metric.BY:
            found[f"by {name}"] += count
    return found


def list_figures(insights: Insights) -> Counter[str]:
    figures = {name: getattr(insights.now, name) for name in FIGURES}
    return +Counter({**figures, **{f"by {one.name}": one.decided for one in insights.people}})


def sum_up_rule(insights: Insights) -> Counter[str]:
    """Return the figures of the only rule, with its looks in the place of each person's decisions."""
    people = {f"by {one.name}": one.decided for one in insights.people}
    if not insights.rules:
        return Counter()
    (cost,) = insights.rules
    assert (cost.rule, cost.decisions, cost.people_ms) == ("ask-refund", sum(people.values()), 0)
    return +Counter({**{name: getattr(cost, name) for name in FIGURES}, **people})


@examples(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fates=st.lists(st.sampled_from(FATES), max_size=12))
async def test_figures_are_those_of_the_trails(wiring: Wiring, redis: Redis, fates: list[Fate]) -> None:
    await redis.delete(*[one async for one in redis.scan_iter() if one != KEYS.definitions.encode()], b"none")
    records = [await live(wiring, fate) for fate in fates]
    twice = [await wiring.part(Counters).waiting() for _ in range(2)]
    for waiting in twice:  # delivered again
        await wiring.part(Counters).count([(one, tally(one.facts, {})) for one in waiting[::2] if one.facts])
    await asyncio.gather(*(Counting(wiring).count_waiting() for _ in range(3)))
    hours = await count_trails(wiring, records)
    days: dict[int, Counter[str]] = defaultdict(Counter)
    for hour, figures in hours.items():
        days[hour // 24].update(figures)
    assert {hour: sum_up((await wiring.part(Counters).read_hours(hour, hour))[0]) for hour in hours} == hours
    assert {day: sum_up((await wiring.part(Counters).read_days(day, day))[0]) for day in days} == days
    brute = sum(hours.values(), Counter[str]())
    for span in RANGES:
        insights = await read_insights(wiring, span, None)
        assert list_figures(insights) == brute
        assert insights.waiting == insights.points[-1].waiting == fates.count("half") + fates.count("open")
        assert sum(point.asked for point in insights.points) == brute["asked"]
        assert insights.waiting_before == 0
        assert sum_up_rule(insights) == brute


async def test_fact_counts_in_its_own_hour_and_day(wiring: Wiring, redis: Redis) -> None:
    at_ms = await wiring.schedule.now_ms()
    moments = [at_ms - days * DAY_MS for days in (0, 1, 3)]
    for moment in moments:
        facts = Facts(commit="c 1", at_ms=moment, items=(ItemFact(tool="refund", step=Step.ASKED),))
        await redis.zadd(KEYS.facts, {json.dumps(facts): moment})
    await Counting(wiring).count_waiting()
    for moment in moments:
        hour, day = moment // HOUR_MS, moment // DAY_MS
        assert await wiring.part(Counters).read_hours(hour, hour) == [{(Metric.ASKED, "refund"): 1}]
        assert await wiring.part(Counters).read_days(day, day) == [{(Metric.ASKED, "refund"): 1}]


async def test_counters_end_and_no_fact_is_left(wiring: Wiring, redis: Redis) -> None:
    await approve(wiring, await make_pending(wiring))
    hour = await wiring.schedule.now_ms() // HOUR_MS
    assert await Counting(wiring).count_waiting() == 2
    assert await Counting(wiring).count_waiting() == 0
    assert not await redis.exists(KEYS.facts)
    assert await redis.pttl(KEYS.figures_of_hour(hour)) > 14 * 24 * HOUR_MS
    assert await redis.pttl(KEYS.figures_of_day(hour // 24)) > 180 * 24 * HOUR_MS


async def test_facts_of_another_version_are_dropped(wiring: Wiring, redis: Redis) -> None:
    await redis.zadd(KEYS.facts, {'{"odd": 1}': 1})
    assert await Counting(wiring).count_waiting() == 1
    assert not await redis.exists(KEYS.facts)


async def test_names_beyond_the_limit_are_counted_together(
    wiring: Wiring, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.features.insights.store._MOST_FIELDS", 2)
    hour = await wiring.schedule.now_ms() // HOUR_MS
    await make_pending(wiring)
    await redis.hset(KEYS.figures_of_hour(hour), mapping={"asked:a": 1, "asked:b": 1})
    await Counting(wiring).count_waiting()
    (counted,) = await wiring.part(Counters).read_hours(hour, hour)
    assert counted[Metric.ASKED, ""] == 1


async def test_night_follows_the_time_zone_of_the_reviewer(wiring: Wiring) -> None:
    hour = (await wiring.schedule.now_ms()) // HOUR_MS % 24
    night = (hour + 1) % 24  # 23:00 in this zone, or later in the same hour
    zone = f"Etc/GMT{(night - 24) if night > 11 else night:+d}"
    await wiring.duty._store.save_preferences("anna", Preferences(time_zone=zone))
    await approve(wiring, await make_pending(wiring))
    await Counting(wiring).count_waiting()
    (anna,) = (await read_insights(wiring, "24h", None)).people
    assert (anna.decided, anna.night, anna.measured) == (1, 1, 0)


async def look_and_approve(wiring: Wiring, look_ms: int) -> None:
    record = await make_pending(wiring)
    yes = DecisionRequest(action="approve", digest=record.items[0].digest)
    shown = Shown(display_hash="1:x", values=1, values_shown=1, look_ms=look_ms)
    await wiring.desk.decide(record.id, "i1", yes, person("anna"), shown=shown)
    await Counting(wiring).count_waiting()


async def test_twenty_fast_approvals_warn_once(wiring: Wiring) -> None:
    warned = []
    for _ in range(41):
        await look_and_approve(wiring, 1_800)
        recent = await wiring.part(Recents).read("anna")
        found = find_warning(recent, recent.decisions[-1].at_ms)
        warned.append(found is not None and found.median_ms == 1_800)
    assert [at for at, one in enumerate(warned, start=1) if one] == [20, 21, 40, 41]
    recent = await wiring.part(Recents).read("anna")
    assert find_warning(recent, recent.decisions[-1].at_ms + 600_001) is None


async def test_slow_or_mixed_decisions_warn_nobody(wiring: Wiring) -> None:
    await look_and_approve(wiring, 60_000)
    for _ in range(19):
        await look_and_approve(wiring, 500)
    await decide(wiring, await make_pending(wiring), "denied")
    assert (await wiring.part(Recents).read("anna")).warned_at_ms is not None, "the median counts, not the longest look"
    assert (await wiring.part(Recents).read("ben")).warned_at_ms is None
