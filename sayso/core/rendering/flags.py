"""Flags of an item in a list: what a reviewer must know before opening it."""

from collections.abc import Iterator
from itertools import islice

from sayso.core.rendering.views import View
from sayso.core.sentences.items import name_alike, name_hidden
from sayso.core.text.language import _
from sayso.core.text.lookalikes import count_lookalikes
from sayso.core.text.suspicions import count_hidden

_MOST = 2


def name_flags(
    tool: str,
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
    labels = [flag.label for flag in view.flags if flag.label]

    def find() -> Iterator[str]:
        if doubt:
            yield _("may already have run")
        if name_alike() in labels or count_lookalikes(tool):
            yield name_alike()
        if resembles:
            yield _("look-alike name")
        if name_hidden() in labels or count_hidden(tool):
            yield name_hidden()
        yield from labels
        if unattended:
            yield _("runs by itself")
        if alone:
            yield _("only you")
        if held:
            yield _("frozen")

    return tuple(islice(dict.fromkeys(find()), _MOST))
