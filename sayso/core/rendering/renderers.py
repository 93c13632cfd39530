"""The table of renderers. The first that knows a call arranges it; the tree takes all others."""

from collections.abc import Callable
from dataclasses import replace

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering import file_changes, http, mail, money, shell, sql, tree
from sayso.core.rendering.mail import check_hosts
from sayso.core.rendering.money import check_accounts
from sayso.core.rendering.views import SEVERE, Call, Flag, Sketch, View, arrange
from sayso.core.sentences.items import warn_of_characters
from sayso.core.text.language import _

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
            return "tree", replace(tree.render(call), flags=(fault,))
        if sketch is not None:
            return name, sketch
    return "tree", tree.render(call)
