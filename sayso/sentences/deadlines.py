"""Sentences about the deadline of an item: the fallback, and time that a freeze holds."""

from collections.abc import Sequence

from sayso.records.freezes import TIME, Freeze
from sayso.records.items import Item
from sayso.records.suspensions import SuspensionRecord
from sayso.records.terms import FallbackAction
from sayso.sentences.names import name_reviewers
from sayso.sentences.times import describe_left, describe_span
from sayso.text.language import _
from sayso.text.summaries import write_leaf
from sayso.transitions.deadlines import escalation_time_ms
from sayso.transitions.freezing import find_held, lost_ms
from sayso.transitions.sightings import needs_sight


def describe_fallback(record: SuspensionRecord, item: Item) -> str:
    """Return the effect of the deadline, as the end of the sentence `If nobody decides, …`."""
    fallback, steps = item.terms.fallback, item.terms.escalate[item.escalated :]
    if fallback.action is FallbackAction.APPROVE:
        if needs_sight(record, item):
            return _("it is approved only if a reviewer has opened it or received its card")
        return _("it is approved unchanged")
    if fallback.action is FallbackAction.VALUE:
        return _("the value “%(value)s” is used", value=write_leaf(fallback.value))
    if fallback.action is FallbackAction.FAIL:
        return _("the run fails")
    if fallback.action is FallbackAction.ESCALATE and steps:
        span = describe_span(escalation_time_ms(record, item))
        return _("%(who)s can also decide, for another %(span)s", who=name_reviewers(steps[0].reviewers), span=span)
    return _("it is denied")


def describe_hold(record: SuspensionRecord, item: Item, freezes: Sequence[Freeze], now_ms: int) -> str:
    """Return that a freeze holds the item's deadline, and the time left; empty while the time runs."""
    if item.item_id not in find_held(record, freezes):
        return ""
    if any(freeze.scope == TIME and freeze.in_force for freeze in freezes):
        return _("on hold")  # the clock is in doubt, so the time left is unknown
    left_ms = item.terms.deadline_at_ms + lost_ms(record, item, freezes, now_ms) - now_ms
    return _("%(left)s, on hold", left=describe_left(left_ms)) if left_ms > 0 else ""
