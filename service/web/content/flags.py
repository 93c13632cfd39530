"""Flags of an item in a list: what a reviewer must know before opening it."""

from collections.abc import Iterator
from itertools import islice

from sayso.records.decisions import Actor
from sayso.records.items import Item
from sayso.records.terms import FallbackAction
from sayso.rendering.views import View
from sayso.text.invisible import count_hidden
from sayso.text.lookalikes import find_lookalikes
from sayso.text.summaries import list_texts

_MOST = 2


def list_flags(item: Item, view: View, reviewer: Actor, *, held: bool) -> tuple[str, ...]:
    """Return the two most severe flags of an open item."""
    return tuple(islice(dict.fromkeys(_flag(item, view, reviewer, held)), _MOST))


def _flag(item: Item, view: View, reviewer: Actor, held: bool) -> Iterator[str]:
    texts = [item.tool.name, *list_texts(item.tool.args)]
    if item.doubt is not None:
        yield "may already have run"
    if any(map(find_lookalikes, texts)):
        yield "look-alike letters"
    if item.resembles:
        yield "look-alike name"
    if any(map(count_hidden, texts)):
        yield "hidden characters"
    yield from (flag.label for flag in view.flags if flag.label)
    if item.terms.fallback.action is FallbackAction.APPROVE:
        yield "runs by itself"
    if item.terms.reviewers == (reviewer.id,):
        yield "only you"
    if held:
        yield "frozen"
