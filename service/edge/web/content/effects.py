"""What a call would do, as its page shows it first: the tool's own preview, escaped, and what has changed in it."""

import re
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import Item
from sayso.core.records.previews import Preview, find_preview, same_args
from sayso.core.rendering.renderers import render_call
from sayso.core.transitions.permits import shows_effect
from service.edge.web.content.blocks import Blocks, make_blocks
from service.edge.web.content.details import Change, compare_args
from service.edge.web.content.diffs import Budget, Part, number_lines

_PATCH = re.compile(r"^(@@ |diff |--- )", re.MULTILINE)


class Effect(NamedTuple):
    """The preview of an item, or of an edit of it: a text, which may have `lines`, or values in `blocks`.

    `error` says why there is none. `changes` compare it with what was approved before. `waits` says that a worker is
    asked for it.
    """

    at_ms: int = 0
    text: str = ""
    lines: tuple[Part, ...] = ()
    blocks: Blocks | None = None
    changes: tuple[Change, ...] = ()
    cut: int = 0
    rows: bool = False
    error: str = ""
    edited: bool = False
    waits: bool = False


def make_effect(item: Item, args: JsonObject | None = None) -> Effect | None:
    """Return the preview of the item, or of an edit with these arguments; None where there can be none."""
    args = None if same_args(args, item.tool.args) else args
    preview, asked = find_preview(item.previews, args), item.preview_request
    if preview is None and not (item.open and shows_effect(item)):
        return None
    waits = item.open and asked is not None and same_args(asked.args, args)
    if preview is None:
        return Effect(edited=args is not None, waits=waits)
    about = Effect(preview.at_ms, cut=preview.cut, edited=args is not None, waits=waits)
    content, changes = preview.content, _compare(preview)
    if preview.error is not None:
        return about._replace(error=preview.error)
    if isinstance(content, str):
        lines = number_lines(content, Budget(), patch=_PATCH.search(content) is not None)
        return about._replace(changes=changes, text=content, lines=lines)
    shown: JsonObject = content if isinstance(content, dict) else {"rows": content} if content else {}
    blocks = make_blocks(render_call("", shown))
    return about._replace(changes=changes, blocks=blocks, rows=isinstance(content, list))


def _compare(preview: Preview) -> tuple[Change, ...]:
    """Return what has changed since the call was approved with another preview."""
    if preview.before is None:
        return ()
    name = "rows" if isinstance(preview.content, list) else "effect"
    rows = compare_args({name: preview.before}, {name: preview.content})
    return tuple(row for row in rows if row.state != "same")
