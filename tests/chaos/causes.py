"""Say of every call in doubt what had become of it: the tools' own file knows what the desk could not.

A doubt is right when its worker was lost in the middle of the call. Every other one is a price that Sayso could save
its users, so a storm counts them apart.
"""

from collections import Counter

from sayso.records.events import EventType
from tests.chaos.histories import Asked, History

NOT_STARTED = "never started"
CUT_OFF = "cut off in the middle"
ENDED = "ended, its result not saved"
REPORTED = "told late by its own worker"
CAUSES = (CUT_OFF, ENDED, NOT_STARTED, REPORTED)


def count_causes(history: History) -> Counter[str]:
    """Return how many questions about calls in doubt there were in one run, by what had become of the call."""
    return Counter(_describe_cause(history, asked) for asked in history.reading.asked.values() if asked.about_doubt)


def _describe_cause(history: History, asked: Asked) -> str:
    """What its worker told before any person did is told apart, whatever kept it from external_event in time."""
    closing = history.reading.closing_of(asked)
    if closing is not None and closing.entry.type == EventType.RESULT_REPORTED:
        return REPORTED
    own = [line for line in history.effects if line.call_id == asked.call_id]
    before = [line for line in own if line.what == "start" and line.at_ms <= history.asked_at_ms(asked)]
    if not before:
        return NOT_STARTED
    ended = any(line.what == "end" and line.effect == before[-1].effect for line in own)
    return ENDED if ended else CUT_OFF
