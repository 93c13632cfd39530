"""The values that an item's page displays, and what the page reports of them with a decision."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS
from sayso.core.records.decisions import Shown
from sayso.core.records.items import Item
from sayso.core.records.tools import ToolDefinition
from sayso.core.rendering.renderers import render_call
from sayso.core.rendering.views import View
from sayso.core.text.language import _
from sayso.core.text.summaries import hash_display, write_shown
from service.web.content.deciding.edits import make_review
from service.web.content.deciding.versions import Version, list_versions
from service.web.content.details import Change, compare_args
from service.web.content.secrets import ItemView
from service.web.form_posts import Post

MOST_PATHS, MOST_PATH_CHARS = 20, 200
MOST_LOOK_MS = DAY_MS
_PLACES = re.compile(r"([0-9]{1,6}(,[0-9]{1,6})*)?")
_SPAN = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True)
class Display:
    """The paths of the displayed values in order, and the hash of all their cells."""

    paths: tuple[str, ...]
    hash: str


def make_display(item: Item, version: Version | None, schema: JsonObject | None, view: View | None = None) -> Display:
    """Return what the page displays: the arguments, or their comparison with another reviewer's version.

    `view` is that of the requested call, where it is known.
    """
    if version is not None:
        return compare_display(compare_args(item.tool.args, version.args))
    if not item.tool.args:
        return _build([])
    view = view or render_call(item.tool.name, item.tool.args, schema)
    rows = (*view.notable, *view.body, *view.rest)
    return _build(
        [
            (
                write_shown(row.path),
                "".join(write_shown(part.text, breaks=True) for line in row.lines for part in line),
            )
            for row in rows
        ]
    )


def compare_display(rows: Sequence[Change]) -> Display:
    """Return what the page displays of two arguments beside each other."""
    return _build([(write_shown(row.path), *_list_cells(row)) for row in rows])


def _list_cells(row: Change) -> tuple[str, ...]:
    if row.pieces:
        return ("".join(write_shown(piece.text, breaks=True) for piece in row.pieces),)
    before = _("not sent") if row.state == "added" else write_shown(row.before, breaks=True)
    after = _("not sent") if row.state == "removed" else write_shown(row.after, breaks=True)
    return before, after


def read_shown(
    view: ItemView, definition: ToolDefinition | None, edited: JsonObject | None, post: Post
) -> Shown | None:
    """Return what the page reports as shown.

    None means not measured: no report, a report that does not fit, a page that displayed something else, or masked
    secrets. A report gives no rights, so it is never a reason to refuse a decision.
    """
    unseen, look_ms = post.get("unseen"), read_look_ms(post)
    masked = view.has_secrets and not view.shown
    if masked or look_ms is None or unseen is None or not _PLACES.fullmatch(unseen):
        return None
    schema = definition.parameters if definition is not None else None
    displays = [make_display(view.item, version, schema) for version in (None, *list_versions(view.item))]
    if edited is not None:
        review = make_review(compare_args(view.item.tool.args, edited), None)
        displays.append(compare_display((*review.changes, *review.same)))
    display = next((display for display in displays if display.hash == post.get("display")), None)
    missing = {int(place) for place in unseen.split(",") if place}
    if display is None or max(missing, default=-1) >= len(display.paths):
        return None
    paths = [path for place, path in enumerate(display.paths) if place not in missing]
    return make_shown(display.hash, len(display.paths), paths, look_ms, named=not view.has_secrets)


def read_look_ms(post: Post) -> int | None:
    """Return the look that the page reports, at most a day; None where it was not measured, as without scripts."""
    look = post.get("look_ms", "")
    return min(int(look), MOST_LOOK_MS) if _SPAN.fullmatch(look) else None


def make_shown(display_hash: str, values: int, paths: Sequence[str], look_ms: int, *, named: bool = True) -> Shown:
    """Return what was shown; the paths of the shown values are `named` only if they are few and short."""
    named = named and len(paths) <= MOST_PATHS and max(map(len, paths), default=0) <= MOST_PATH_CHARS
    return Shown(
        display_hash=display_hash,
        values=values,
        values_shown=len(paths),
        paths=tuple(paths) if named else (),
        look_ms=look_ms,
    )


def _build(rows: list[tuple[str, ...]]) -> Display:
    return Display(tuple(row[0] for row in rows), hash_display(rows))
