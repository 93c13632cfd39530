"""Say what is wrong with the demo's run, from its trail and from what its tools did to the world."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from demo.effects import Effect
from sayso.records.events import EventType, TrailEntry, find_break

LOWERED_AMOUNT = 750.0
LAST_DAY = "2022-05-07"
SENT_TO = "john.doe@example.com"

LIFECYCLE = (
    EventType.TOOL_BATCH_STARTED,
    EventType.POLICY_DECISION,
    EventType.RUN_PAUSED,
    EventType.RUN_RESUMED,
    EventType.TOOL_COMPLETED,
    EventType.WARNING,
)
"""The six kinds of event of a tool call's life; the demo shows each of them."""

EXPECTED: tuple[tuple[str, str, JsonValue], ...] = (
    ("bank_account.calculate_interest", "principal", 5000.0),
    ("bank_account.transfer", "amount", LOWERED_AMOUNT),
    ("festival.book_ticket", "festival", "Coachella"),
    ("hotel_booking.book", "check_out", LAST_DAY),
    ("hotel_booking.book", "check_out", "2022-06-10"),
    ("send_email", "to", SENT_TO),
)
"""All that is to happen: which tool, told apart by which argument. No concert, no changed address, no second mail."""

CALLS = 11


def find_faults(status: str, trail: Sequence[TrailEntry], effects: Iterable[Effect]) -> list[str]:
    """Return a sentence for everything that is not as it has to be; none when the run went right."""
    return [*_faults_of_run(status, trail), *_faults_of_effects(tuple(effects))]


def _faults_of_run(status: str, trail: Sequence[TrailEntry]) -> Iterator[str]:
    if status != "completed":
        yield f"The run ended {status}, not completed."
    if (broken := find_break(list(trail))) is not None:
        yield f"The trail does not follow from itself at entry {broken}."
    counts = Counter(entry.type for entry in trail)
    for kind in LIFECYCLE:
        if not counts[kind]:
            yield f"The timeline has no {kind}."
    for kind in (EventType.POLICY_DECISION, EventType.TOOL_COMPLETED):
        if counts[kind] != CALLS:
            yield f"There are {counts[kind]} events {kind} for {CALLS} calls."
    if counts[EventType.RUN_PAUSED] != counts[EventType.RUN_RESUMED]:
        yield f"The run paused {counts[EventType.RUN_PAUSED]} times and went on {counts[EventType.RUN_RESUMED]} times."


def _faults_of_effects(effects: tuple[Effect, ...]) -> Iterator[str]:
    done = Counter(map(_gist, effects))
    for tool, name, value in EXPECTED:
        if (times := done.pop((tool, name, str(value)), 0)) != 1:
            yield f"{tool} with {name} {value} was done {times} times, not once."
    for (tool, name, value), times in done.items():
        yield f"{tool} with {name} {value} was done {times} times, and never should have been."
    keys = Counter(effect.idempotency_key for effect in effects)
    for key, times in keys.items():
        if times > 1:
            yield f"The idempotency key {key} was used for {times} effects."


def _gist(effect: Effect) -> tuple[str, str, str]:
    names = {tool: name for tool, name, _ in EXPECTED}
    name = names.get(effect.tool, "args")
    return effect.tool, name, str(effect.args.get(name, effect.args))
