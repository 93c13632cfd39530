"""Flags of an item in a list: what a reviewer must know before opening it."""

from collections.abc import Iterator
from itertools import islice

from sayso.canonical_json import JsonObject
from sayso.rendering.views import View
from sayso.text.foreign import count_lookalikes
from sayso.text.language import _
from sayso.text.summaries import list_texts
from sayso.text.suspicions import count_hidden

_MOST = 2


def name_flags(
    tool: str,
    args: JsonObject,
    view: View,
    *,
    doubt: bool,
    resembles: bool,
    unattended: bool,
    alone: bool = False,
    held: bool = False,
) -> tuple[str, ...]:
    """Return the two most severe flags of an open item.

    `unattended` says that it runs if nobody decides, `alone` that only this reviewer can decide it, and `held` that a
    freeze holds it.
    """
    texts = [tool, *list_texts(args)]

    def find() -> Iterator[str]:
        if doubt:
            yield _("may already have run")
        if any(map(count_lookalikes, texts)):
            yield _("look-alike letters")
        if resembles:
            yield _("look-alike name")
        if any(map(count_hidden, texts)):
            yield _("hidden characters")
        yield from (flag.label for flag in view.flags if flag.label)
        if unattended:
            yield _("runs by itself")
        if alone:
            yield _("only you")
        if held:
            yield _("frozen")

    return tuple(islice(dict.fromkeys(find()), _MOST))
