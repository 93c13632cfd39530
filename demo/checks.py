"""Checks of the demo's run against its trail and the effects of its tools; the trail as plain text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from demo.agents import Effect
from sayso.core.records.chain import find_break
from sayso.core.records.events import EventType, TrailEntry
from service.edge.web.content.timeline import Line, describe_trail

LOWERED_AMOUNT = 750.0
CHECK_OUT = "2022-05-07"
SENT_TO = "john.doe@example.com"

LIFECYCLE = (
    EventType.TOOL_BATCH_STARTED,
    EventType.POLICY_DECISION,
    EventType.RUN_PAUSED,
    EventType.RUN_RESUMED,
    EventType.TOOL_COMPLETED,
    EventType.WARNING,
)
"""The events in the life of a tool call. The demo shows each of them."""

EXPECTED: tuple[tuple[str, str, JsonValue], ...] = (
    ("bank_account.calculate_interest", "principal", 5000.0),
    ("bank_account.transfer", "amount", LOWERED_AMOUNT),
    ("festival.book_ticket", "festival", "Coachella"),
    ("hotel_booking.book", "check_out", CHECK_OUT),
    ("hotel_booking.book", "check_out", "2022-06-10"),
    ("send_email", "to", SENT_TO),
)
"""All expected effects, identified by tool and one argument: no concert, no changed address, no second mail."""

CALLS = 11


def find_faults(status: str, trail: Sequence[TrailEntry], effects: Iterable[Effect]) -> list[str]:
    """Return a sentence for each fault, or none if the run went as expected."""
    return [*_faults_of_run(status, trail), *_faults_of_effects(tuple(effects))]


def _faults_of_run(status: str, trail: Sequence[TrailEntry]) -> Iterator[str]:
    if status != "completed":
        yield f"The run ended {status}, not completed."
    if (broken := find_break(list(trail))) is not None:
        yield f"The hash chain of the trail breaks at entry {broken}."
    counts = Counter(entry.type for entry in trail)
    for kind in LIFECYCLE:
        if not counts[kind]:
            yield f"The timeline has no {kind}."
    for kind in (EventType.POLICY_DECISION, EventType.TOOL_COMPLETED):
        if counts[kind] != CALLS:
            yield f"The timeline has {counts[kind]} {kind} events for {CALLS} calls."
    if counts[EventType.RUN_PAUSED] != counts[EventType.RUN_RESUMED]:
        yield f"The run paused {counts[EventType.RUN_PAUSED]} times and resumed {counts[EventType.RUN_RESUMED]} times."


def _faults_of_effects(effects: tuple[Effect, ...]) -> Iterator[str]:
    counts = Counter(map(_summarise, effects))
    for tool, name, value in EXPECTED:
        if (times := counts.pop((tool, name, str(value)), 0)) != 1:
            yield f"{tool} with {name} {value} ran {times} times instead of once."
    for (tool, name, value), times in counts.items():
        yield f"{tool} with {name} {value} ran {times} times but should not have run."
    keys = Counter(effect.idempotency_key for effect in effects)
    for key, times in keys.items():
        if times > 1:
            yield f"The idempotency key {key} was used for {times} effects."


def _summarise(effect: Effect) -> tuple[str, str, str]:
    names = {tool: name for tool, name, _ in EXPECTED}
    name = names.get(effect.tool, "args")
    return effect.tool, name, str(effect.args.get(name, effect.args))


MAX_CHARS = 160


def render_timeline(trail: Sequence[TrailEntry]) -> Iterator[str]:
    """Yield a line for each entry: seconds since the first entry, event type, and summary."""
    for line in describe_trail(trail):
        text = f"{(line.at_ms - trail[0].at_ms) / 1000:8.3f} s  {line.kind:<20}  {_summarise_event(line)}"
        yield text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _summarise_event(line: Line) -> str:
    more = ": ".join(part for part in (line.text, line.note, line.data) if part)
    return " ".join(more.split())
