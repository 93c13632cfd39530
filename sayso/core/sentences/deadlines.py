"""Sentences about the deadline of an item: what happens then and when, and time that a freeze holds."""

from collections.abc import Sequence

from sayso.core.records.freezes import TIME, Freeze
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import FallbackAction
from sayso.core.sentences.names import name_reviewers
from sayso.core.sentences.times import Moment, Sentence, compose, describe_left, describe_span
from sayso.core.text.language import _, ngettext, translate_count
from sayso.core.text.summaries import write_leaf
from sayso.core.transitions.deadlines import escalates_at_deadline, escalation_time_ms, next_step_at_ms
from sayso.core.transitions.freezing import find_held, lost_ms
from sayso.core.transitions.sightings import needs_sight


def describe_deadline(record: SuspensionRecord, item: Item) -> Sentence:
    """Return what happens to an open item if nobody answers, and when: `Denied at 11:58 if nobody answers`."""
    action, at = item.terms.fallback.action, Moment(item.terms.deadline_at_ms)
    if names := _find_asked_at_deadline(record, item):
        until = Moment(at.at_ms + escalation_time_ms(record, item))
        asked = translate_count(
            "At %(when)s %(who)s is asked too, until %(until)s",
            "At %(when)s %(who)s are asked too, until %(until)s",
            len(names),
        )
        return compose(asked, when=at, who=name_reviewers(names), until=until)
    if action is FallbackAction.APPROVE:
        if needs_sight(record, item):
            unseen = _(
                "Denied at %(when)s, unless a reviewer has opened it or received its card: then it runs by itself"
            )
            return compose(unseen, when=at)
        return compose(_("Runs by itself at %(when)s unless someone denies"), when=at)
    if action is FallbackAction.VALUE:
        value = write_leaf(item.terms.fallback.value)
        return compose(_("Runs with the value “%(value)s” at %(when)s if nobody answers"), value=value, when=at)
    if action is FallbackAction.FAIL:
        return compose(_("The run fails at %(when)s if nobody answers"), when=at)
    return compose(_("Denied at %(when)s if nobody answers"), when=at)


def describe_next_step(record: SuspensionRecord, item: Item) -> Sentence:
    """Return who is asked too before the deadline, and when; empty if nobody is."""
    at_ms = next_step_at_ms(record, item)
    if not item.open or at_ms is None or at_ms >= item.terms.deadline_at_ms:
        return ()
    names = item.terms.escalate[item.escalated].reviewers
    asked = translate_count("At %(when)s %(who)s is asked too", "At %(when)s %(who)s are asked too", len(names))
    return compose(asked, when=Moment(at_ms), who=name_reviewers(names))


def describe_fallback(record: SuspensionRecord, item: Item) -> str:
    """Return the effect of the deadline without its time, as the end of the sentence `If nobody answers, …`."""
    fallback = item.terms.fallback
    if names := _find_asked_at_deadline(record, item):
        span = describe_span(escalation_time_ms(record, item))
        return ngettext(
            "%(who)s is asked too, for another %(span)s",
            "%(who)s are asked too, for another %(span)s",
            len(names),
            who=name_reviewers(names),
            span=span,
        )
    if fallback.action is FallbackAction.APPROVE:
        if needs_sight(record, item):
            return _("it runs by itself only if a reviewer has opened it or received its card")
        return _("it runs by itself")
    if fallback.action is FallbackAction.VALUE:
        return _("the value “%(value)s” is used", value=write_leaf(fallback.value))
    return _("the run fails") if fallback.action is FallbackAction.FAIL else _("it is denied")


def _find_asked_at_deadline(record: SuspensionRecord, item: Item) -> tuple[str, ...]:
    """Return the reviewers whom the deadline adds: those of the first step that is not due before it."""
    if not escalates_at_deadline(record, item):
        return ()
    since_ms, deadline_ms = record.created_at_ms + item.held_ms, item.terms.deadline_at_ms
    steps = item.terms.escalate[item.escalated :]
    return next((step.reviewers for step in steps if since_ms + step.after_s * 1000 >= deadline_ms), ())


def describe_hold(record: SuspensionRecord, item: Item, freezes: Sequence[Freeze], now_ms: int) -> str:
    """Return that a freeze holds the item's deadline, and the time left; empty while the time runs."""
    if item.item_id not in find_held(record, freezes):
        return ""
    if any(freeze.scope == TIME and freeze.in_force for freeze in freezes):
        return _("on hold")  # the clock is in doubt, so the time left is unknown
    left_ms = item.terms.deadline_at_ms + lost_ms(record, item, freezes, now_ms) - now_ms
    return _("%(left)s, on hold", left=describe_left(left_ms)) if left_ms > 0 else ""
