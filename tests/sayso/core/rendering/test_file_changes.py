"""Changes of files show their path first, and added and removed lines marked."""

import pytest
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.renderers import render_call
from sayso.core.text.summaries import list_values

PATCH = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n same"


def test_patch_marks_its_lines_and_names_its_file() -> None:
    view = render_call("apply_patch", {"patch": PATCH})
    assert view.headline == "Change x.py"
    kinds = {part.text: part.kind for line in view.body[0].lines for part in line}
    assert (kinds["+new"], kinds["-old"], kinds["@@ -1 +1 @@"]) == ("added", "removed", "header")


def test_replacement_shows_old_and_new() -> None:
    view = render_call("str_replace", {"path": "a.py", "old_string": "x\n", "new_string": "y\n"})
    assert view.headline == "Change a.py"
    assert [(row.path, row.style, row.text) for row in view.body] == [
        ("old_string", "removed", "x\n"),
        ("new_string", "added", "y\n"),
    ]


def test_several_old_or_new_texts_are_not_paired() -> None:
    args: JsonObject = {"path": "a.py", "old_string": "a\n", "old_text": "b\n", "new_string": "c\n", "new_text": "d\n"}
    view = render_call("edit_file", args)
    assert {row.path: row.style for row in view.body} == dict.fromkeys([*args][1:], "code")


def test_list_of_edits_pairs_the_texts_of_each_entry() -> None:
    edits: list[JsonValue] = [
        {"new_string": "y", "old_string": "x", "replace_all": True},
        {"old_string": "gone\n", "new_string": ""},
        {"old_string": "", "new_string": "more\n"},
    ]
    view = render_call("MultiEdit", {"file_path": "a.py", "edits": edits})
    assert view.headline == "Change a.py"
    assert [(row.path, row.style, row.stored) for row in view.body] == [
        ("edits[0].old_string", "removed", "x"),
        ("edits[0].new_string", "added", "y"),
        ("edits[0].replace_all", "value", "true"),
        ("edits[1].old_string", "removed", "gone\n"),
        ("edits[1].new_string", "added", ""),
        ("edits[2].old_string", "removed", ""),
        ("edits[2].new_string", "added", "more\n"),
    ]


def test_edits_of_several_files_name_them() -> None:
    edits: list[JsonValue] = [{"path": f"{name}.py", "oldText": "a", "newText": "b"} for name in "xy"]
    view = render_call("edit_files", {"edits": edits, "dryRun": False})
    assert view.headline == "Change x.py and 1 more"
    assert [row.path for row in view.body[:3]] == ["edits[0].path", "edits[0].oldText", "edits[0].newText"]


UNSURE: list[JsonValue] = [
    {"old": "a", "new": None},
    {"old": "a", "old_text": "b", "new": "c"},
    {"old": {"string": "a"}, "new": {"string": "b"}},
    {"old": "a"},
    {"old": "", "new": ""},
    "old",
    [{"old": "a", "new": "b"}],
    {"": "a", "old.new": "b", "]": {"new": "c"}},
]


@pytest.mark.parametrize("entry", UNSURE, ids=str)
def test_edit_that_is_not_one_text_for_another_is_not_paired(entry: JsonValue) -> None:
    args: JsonObject = {"path": "a.py", "edits": [entry, {"old": "x", "new": "y"}]}
    view = render_call("edit", args)
    pairs = [row.path for row in view.body if row.style in ("removed", "added")]
    assert pairs == ["edits[1].old", "edits[1].new"]
    shown = [row.path for row in (*view.notable, *view.body, *view.rest)]
    assert sorted(shown) == sorted(leaf.path for leaf in list_values(args))


def test_list_of_edits_that_replaces_nothing_is_no_change_of_files() -> None:
    assert render_call("plan", {"path": "a.py", "changes": [{"old": "", "new": ""}, "x"]}).renderer == "tree"


def test_emptied_text_is_a_replacement() -> None:
    view = render_call("str_replace", {"path": "a.py", "old_str": "x\n", "new_str": "", "file_text": "z"})
    assert [(row.path, row.style, row.text) for row in view.body] == [
        ("old_str", "removed", "x\n"),
        ("new_str", "added", '""'),
    ]


def test_patch_without_line_numbers_names_its_file() -> None:
    assert render_call("apply_patch", {"patch": "*** Begin Patch\n*** Update File: x.py\n+a"}).headline == "Change x.py"


def test_new_content_is_a_write() -> None:
    view = render_call("write_file", {"filePath": "/etc/hosts", "content": "127.0.0.1 x\n"})
    assert (view.headline, view.body[0].style) == ("Write /etc/hosts", "code")


def test_read_of_a_file_is_no_change() -> None:
    assert render_call("read_file", {"path": "/etc/hosts"}).renderer == "tree"
