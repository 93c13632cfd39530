"""The table of renderers, of which the first that knows a call arranges it, and the flags of an item in a list."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering import file_changes, http, mail, money, shell, sql
from sayso.core.rendering.mail import check_hosts
from sayso.core.rendering.money import check_accounts
from sayso.core.rendering.views import SEVERE, Call, Flag, Sketch, View, arrange, normalize, read_text, shorten
from sayso.core.sentences.items import name_alike, name_hidden, warn_of_characters
from sayso.core.text.language import _
from sayso.core.text.lookalikes import count_lookalikes
from sayso.core.text.suspicions import count_hidden

_HEADLINE_NAMES = (
    *("to", "recipient", "recipients", "email", "url", "host", "path", "file", "filepath", "amount"),
    "account",
)
"""Arguments whose value names an unknown call best, the best first."""

RENDERERS: dict[str, Callable[[Call], Sketch | None]] = {
    "shell": shell.render,
    "sql": sql.render,
    "http": http.render,
    "mail": mail.render,
    "file": file_changes.render,
    "money": money.render,
}
"""Each returns None for a call that is not its own."""


def render_call(tool: str, args: JsonObject, schema: JsonObject | None = None) -> View:
    """Return the view of a call. What a renderer cannot read is shown as a tree."""
    call = Call(tool, args, schema or {})
    unlike = (Flag(sentence, SEVERE, label) for sentence, label in warn_of_characters(args))
    flags = [*unlike, *check_hosts(args), *check_accounts(call)]
    name, sketch = _sketch(call)
    return arrange(call, name, sketch, flags)


def _sketch(call: Call) -> tuple[str, Sketch]:
    for name, render in RENDERERS.items():
        try:
            sketch = render(call)
        except (ArithmeticError, LookupError, RecursionError, ValueError):
            sentence = _("This may be a call of kind %(kind)s, but it cannot be read as one. Check every value.")
            fault = Flag(sentence % {"kind": name}, SEVERE, _("not readable"))
            return "tree", replace(_render_tree(call), flags=(fault,))
        if sketch is not None:
            return name, sketch
    return "tree", _render_tree(call)


def _render_tree(call: Call) -> Sketch:
    """Return the values as they are; the headline adds the first of the known names to the tool's name."""
    for name in _HEADLINE_NAMES:
        for leaf in call.find(name)[:1]:
            key = next(arg for arg in call.args if normalize(arg) == name)
            return Sketch(f"{call.tool}: {key} {shorten(read_text(leaf))}")
    return Sketch(call.tool)


def name_flags(
    tool: str, view: View, *, doubt: bool, resembles: bool, unattended: bool, alone: bool = False, held: bool = False
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

    return tuple(islice(dict.fromkeys(find()), 2))
