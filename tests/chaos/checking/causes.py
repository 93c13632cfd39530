"""What really happened to every call in doubt: the tools' evidence shows it.

A doubt is justified when the worker was lost in the middle of the call. An experiment counts all others separately,
because Sayso could avoid them.
"""

from collections import Counter

from sayso.core.records.events import EventType
from tests.chaos.checking.history import History, TrailItem

NOT_STARTED = "never started"
CUT_OFF = "cut off in the middle"
ENDED = "ended, its result not saved"
REPORTED = "reported late by its own worker"
CAUSES = (CUT_OFF, ENDED, NOT_STARTED, REPORTED)


def count_causes(history: History) -> Counter[str]:
    """Count the items about calls in doubt of one run by cause."""
    return Counter(_find_cause(history, item) for item in history.index.items.values() if item.is_in_doubt)


def _find_cause(history: History, item: TrailItem) -> str:
    closing = history.index.closing_of(item)
    if closing is not None and closing.entry.type == EventType.RESULT_REPORTED:
        return REPORTED
    lines = [line for line in history.effects if line.call_id == item.call_id]
    starts = [line for line in lines if line.what == "start" and line.at_ms <= history.suspended_at_ms(item)]
    if not starts:
        return NOT_STARTED
    ended = any(line.what == "end" and line.effect == starts[-1].effect for line in lines)
    return ENDED if ended else CUT_OFF
