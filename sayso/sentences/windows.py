"""Sentences about the times at which a rule applies."""

from sayso.calendars.hours import WEEKDAYS
from sayso.calendars.windows import TimeWindow
from sayso.policy.rules import PolicyRule
from sayso.sentences.names import join_words


def describe_window(window: TimeWindow) -> str:
    """Return hours of weekdays, such as `Mon to Fri, 08:00 to 18:00 in UTC, without public holidays of CH`."""
    places = [WEEKDAYS.index(day) for day in window.working.hours.weekdays]
    names = [day.title() for day in window.working.hours.weekdays]
    in_a_row = len(places) > 2 and places[-1] - places[0] == len(places) - 1
    days = "every day" if len(places) == 7 else f"{names[0]} to {names[-1]}" if in_a_row else join_words(names)
    hours = "" if window.hours == "00:00-24:00" else f", {window.hours.replace('-', ' to ')}"
    holidays = f", without public holidays of {window.holidays}" if window.holidays else ""
    return f"{days}{hours} in {window.zone}{holidays}"


def describe_dates(rule: PolicyRule) -> str:
    """Return from when until when the rule applies, such as `from 2026-12-01 until 2026-12-31`; empty for always."""
    begin = f"from {rule.valid_from}" if rule.valid_from is not None else ""
    end = f"until {rule.valid_until}" if rule.valid_until is not None else ""
    return " ".join(one for one in (begin, end) if one)
