"""Sentences about the stages of an item: which are done, which is now, and who approves next."""

from typing import NamedTuple

from sayso.core.records.items import Item
from sayso.core.sentences import join_words, name_reviewers
from sayso.core.text.language import _, mark

_NAMES = {"done": mark("done"), "now": mark("now"), "next": mark("next")}


class StageLine(NamedTuple):
    """A stage: its state (done, now or next), that in words, who may decide, and who approved it."""

    state: str
    name: str
    reviewers: str
    people: str


def list_stages(item: Item) -> list[StageLine]:
    """Return the stages of an item in their order; empty without stages."""
    return [_describe(item, place) for place in range(len(item.terms.stages))]


def _describe(item: Item, place: int) -> StageLine:
    current = item.terms.stage
    passed = item.outcome is not None and item.outcome.may_run
    state = "done" if place < current or passed else "now" if place == current else "next"
    state = state if item.open or place < current or passed else ""
    people = [made.by.id for made in item.decisions if made.stage == place and made.action != "deny"]
    reviewers = name_reviewers(item.terms.stages[place].reviewers, "or")
    return StageLine(state, _(_NAMES[state]) if state else "", reviewers, join_words(people))


def describe_stages(item: Item) -> str:
    """Return the stages in one line, such as `1 the group support: done (kim), 2 the group finance: now`."""
    return ", ".join(f"{number} {_write(line)}" for number, line in enumerate(list_stages(item), start=1))


def _write(line: StageLine) -> str:
    state = f": {line.name}" if line.name else ""
    return line.reviewers + state + (f" ({line.people})" if line.people else "")
