"""Signs that a person approves without looking. They are shown once, and never keep anybody from deciding."""

from collections.abc import Sequence
from statistics import median_low
from typing import NamedTuple

from sayso.core.sentences.times import describe_brief, describe_span
from sayso.core.text.language import _
from service.store.insights.recents import Recent, RecentDecisions, Recents

DECISIONS = 20
SHORT_MS = 2_000
_SHOWN_MS = 600_000


class Fatigue(NamedTuple):
    """Approvals in a row, the time that they took, and the median look."""

    approved: int
    span_ms: int
    median_ms: int

    @property
    def sentence(self) -> str:
        """What the item's bar says of it."""
        return _(
            "%(count)s approved in %(span)s, median %(median)s. Take the next from another tool, or pause 10 min.",
            count=self.approved,
            span=describe_span(self.span_ms),
            median=describe_brief(self.median_ms),
        )


def find_fatigue(decisions: Sequence[Recent]) -> Fatigue | None:
    """Return the fatigue in the last 20 decisions: all approve, after a median look under 2 s, all measured."""
    last = decisions[-DECISIONS:]
    spans_ms = [decision.look_ms for decision in last if decision.approved and decision.look_ms is not None]
    if len(spans_ms) < DECISIONS or (median_ms := median_low(spans_ms)) >= SHORT_MS:
        return None
    return Fatigue(DECISIONS, last[-1].at_ms - last[0].at_ms, median_ms)


async def warn_tired(recents: Recents, name: str) -> bool:
    """Warn a person with fatigue, unless one of the same decisions warned them before."""
    decisions, warned_at_ms = await recents.read(name)
    if find_fatigue(decisions) is None or (warned_at_ms or 0) >= decisions[-DECISIONS].at_ms:
        return False
    await recents.warn(name, decisions[-1].at_ms)
    return True


def find_warning(recent: RecentDecisions, now_ms: int) -> Fatigue | None:
    """Return the fatigue that a person is shown now: until their second decision after it, and for 10 minutes."""
    warned_at_ms = recent.warned_at_ms
    if warned_at_ms is None or now_ms - warned_at_ms > _SHOWN_MS:
        return None
    until = [decision for decision in recent.decisions if decision.at_ms <= warned_at_ms]
    return find_fatigue(until) if len(recent.decisions) - len(until) < 2 else None
