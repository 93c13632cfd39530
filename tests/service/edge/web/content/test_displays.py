"""What a page may report as shown, and what counts as not measured."""

from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import Item, ItemTool
from service.edge.web.content.details import ItemView, look_at
from service.edge.web.content.edits import MOST_LOOK_MS, MOST_PATH_CHARS, MOST_PATHS, make_display, read_shown
from tests.sayso.core.sentences.samples import make_item, make_record

ARGS: JsonObject = {"order": "A-1", "amount": 250, "lines": [{"sku": "CUP"}]}


def view_of(args: JsonObject = ARGS, shown: bool = False, **terms: Any) -> ItemView:
    item = make_item({"tool": ItemTool(name="refund", args=args, definition="d" * 64)}, **terms)
    return look_at(make_record(item), item, None, shown=shown)


def report(item: Item, **fields: str) -> dict[str, str]:
    return {"display": make_display(item, None, None).hash, "unseen": "", "look_ms": "41000", **fields}


def test_report_of_everything_is_recorded() -> None:
    view = view_of()
    shown = read_shown(view, None, None, report(view.item))
    assert shown is not None
    assert (shown.values, shown.values_shown, shown.look_ms) == (3, 3, 41_000)
    assert set(shown.paths) == {"order", "amount", "lines[0].sku"}
    assert shown.display_hash == make_display(view.item, None, None).hash


def test_values_not_in_view_are_left_out() -> None:
    view = view_of()
    shown = read_shown(view, None, None, report(view.item, unseen="0,2"))
    assert shown is not None
    everything = read_shown(view, None, None, report(view.item))
    assert everything is not None
    assert (shown.values, shown.values_shown, shown.paths) == (3, 1, everything.paths[1:2])


@pytest.mark.parametrize(
    "fields",
    [
        {"display": ""},
        {"display": "1:" + "0" * 64},
        {"unseen": "3"},
        {"unseen": "-1"},
        {"unseen": "0,"},
        {"unseen": "all"},
        {"unseen": "٣"},
        {"look_ms": ""},
        {"look_ms": "-5"},
        {"look_ms": "1e3"},
        {"look_ms": "9" * 16},
    ],
)
def test_bad_report_is_not_measured(fields: dict[str, str]) -> None:
    view = view_of()
    assert read_shown(view, None, None, report(view.item, **fields)) is None


@pytest.mark.parametrize("field", ["display", "unseen", "look_ms"])
def test_incomplete_report_is_not_measured(field: str) -> None:
    view = view_of()
    post = report(view.item)
    del post[field]
    assert read_shown(view, None, None, post) is None


def test_look_time_is_capped_at_a_day() -> None:
    view = view_of()
    shown = read_shown(view, None, None, report(view.item, look_ms="9" * 15))
    assert shown is not None
    assert shown.look_ms == MOST_LOOK_MS


@pytest.mark.parametrize(
    "args", [{f"v{place}": 1 for place in range(MOST_PATHS + 1)}, {"v" * (MOST_PATH_CHARS + 1): 1}]
)
def test_many_or_long_paths_are_only_counted(args: JsonObject) -> None:
    view = view_of(args)
    shown = read_shown(view, None, None, report(view.item))
    assert shown is not None
    assert (shown.values_shown, shown.paths) == (len(args), ())


def test_call_without_arguments_displays_no_values() -> None:
    view = view_of({})
    shown = read_shown(view, None, None, report(view.item))
    assert shown is not None
    assert (shown.values, shown.values_shown) == (0, 0)


def test_masked_values_are_not_measured_and_shown_ones_are_not_named() -> None:
    masked, revealed = view_of(secrets=["order"]), view_of(shown=True, secrets=["order"])
    assert read_shown(masked, None, None, report(masked.item)) is None
    assert read_shown(masked, None, None, report(revealed.item)) is None
    assert read_shown(revealed, None, None, report(masked.item)) is None
    shown = read_shown(revealed, None, None, report(revealed.item))
    assert shown is not None
    assert (shown.values_shown, shown.paths) == (3, ())
