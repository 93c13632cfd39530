"""Times, spans and deadlines in words; every reader sees moments in their own time zone, else in UTC.

`templates/static/times.js` uses the same words.
"""

import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from sayso.core.records.freezes import TIME, Freeze
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import FallbackAction
from sayso.core.records.undoing import is_offer
from sayso.core.sentences import name_reviewers
from sayso.core.text.language import _, ngettext, translate_count
from sayso.core.text.summaries import write_leaf
from sayso.core.transitions.deadlines import escalates_at_deadline, escalation_time_ms, needs_sight, next_step_at_ms
from sayso.core.transitions.freezing import find_held, lost_ms

_ZONE: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


def use_zone(zone: tzinfo) -> None:
    """Use a time zone for the rest of this task."""
    _ZONE.set(zone)


def name_zone() -> str:
    """Return the name of the time zone in use, such as `Europe/Berlin`."""
    return str(_ZONE.get())


def _localize(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, tz=_ZONE.get())


def _name_offset(at: datetime) -> str:
    """Return the short name of a moment's zone, such as `UTC`, `CET` or `UTC+05`."""
    name = at.strftime("%Z")
    return f"UTC{name}" if name[:1] in "+-" else name


_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def describe_span(span_ms: int) -> str:
    """Return a span in its two largest units, such as `4 min 10 s`; `0 s` for less than a second."""
    rest_s = max(0, span_ms) // 1000
    words: list[str] = []
    for size, unit in _UNITS:
        if rest_s >= size or (unit == "s" and not words):
            words.append(f"{rest_s // size} {unit}")
            rest_s %= size
            if rest_s == 0 or len(words) == 2:
                break
        elif words:
            break
    return " ".join(words)


def describe_left(left_ms: int) -> str:
    """Return the time left before a deadline: `4 min 10 s left`, `time is up`."""
    return _("%(span)s left", span=describe_span(left_ms)) if left_ms > 0 else _("time is up")


def describe_due(at_ms: int, now_ms: int) -> str:
    """Return a deadline briefly: `42 s`, `9 min`, and from 10 minutes `11:58 UTC`, `Tue` or `3 Dec`."""
    left_ms = at_ms - now_ms
    if left_ms <= 0:
        return _("time is up")
    if left_ms < 600_000:
        return describe_span(left_ms if left_ms < 60_000 else left_ms // 60_000 * 60_000)
    at, now = _localize(at_ms), _localize(now_ms)
    if at.date() == now.date():
        return f"{at:%H:%M} {_name_offset(at)}"
    return _(f"{at:%a}") if (at.date() - now.date()).days < 7 else f"{at.day} {at:%b}"


def describe_ago(at_ms: int, now_ms: int) -> str:
    """Return the age of a moment in its largest unit: `12 s ago`, `3 h ago`."""
    if now_ms - at_ms < 1000:
        return _("just now")
    return _("%(span)s ago", span=" ".join(describe_span(now_ms - at_ms).split(" ")[:2]))


def describe_clock(at_ms: int) -> str:
    """Return a moment with its zone: `2026-11-21 12:03:04 UTC`."""
    at = _localize(at_ms)
    return f"{at:%Y-%m-%d %H:%M:%S} {_name_offset(at)}"


def describe_local(at_ms: int, zone: tzinfo) -> str:
    """Return a moment in a time zone: `2026-11-21 13:03`."""
    return datetime.fromtimestamp(at_ms / 1000, tz=zone).strftime("%Y-%m-%d %H:%M")


def describe_hour(at_ms: int) -> str:
    """Return the time of day with its zone: `12:03:04 UTC`."""
    at = _localize(at_ms)
    return f"{at:%H:%M:%S} {_name_offset(at)}"


def describe_brief(span_ms: int) -> str:
    """Return a span as `describe_span` does, but with tenths under 10 s: `1.8 s`."""
    return f"{span_ms / 1000:.1f} s" if span_ms < 10_000 else describe_span(span_ms)


def describe_when(at_ms: int, now_ms: int) -> str:
    """Return a past moment as briefly as it can be understood: `11:58 UTC` today, else `3 Dec, 11:58 UTC`."""
    at, now = _localize(at_ms), _localize(now_ms)
    clock = f"{at:%H:%M} {_name_offset(at)}"
    if at.date() == now.date():
        return clock
    return f"{at.day} {at:%b}{f' {at.year}' if at.year != now.year else ''}, {clock}"


_PLACE = re.compile(r"%\((\w+)\)s")


class Moment(NamedTuple):
    """A time within a sentence."""

    at_ms: int


Sentence = tuple[str | Moment, ...]


def compose(message: str, **facts: str | Moment) -> Sentence:
    """Return a translated message with its named places filled: texts, with moments between them."""
    pieces = _PLACE.split(message)
    parts: list[str | Moment] = [facts[piece] if place % 2 else piece for place, piece in enumerate(pieces)]
    return tuple(part for part in parts if part)


def write_sentence(sentence: Sentence, write: Callable[[int], str]) -> str:
    """Return the sentence with its moments written by `write`."""
    return "".join(write(part.at_ms) if isinstance(part, Moment) else part for part in sentence)


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
    end = _("Denied at %(when)s if nobody answers")
    if is_offer(item):
        end = _("Stays as it is from %(when)s if nobody undoes it")
    elif action is FallbackAction.FAIL:
        end = _("The run fails at %(when)s if nobody answers")
    return compose(end, when=at)


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
    if is_offer(item):
        return _("it stays as it is")
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
