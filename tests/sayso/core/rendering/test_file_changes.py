"""Changes of files show their path first, and added and removed lines marked."""

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.renderers import render_call

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


def test_new_content_is_a_write() -> None:
    view = render_call("write_file", {"filePath": "/etc/hosts", "content": "127.0.0.1 x\n"})
    assert (view.headline, view.body[0].style) == ("Write /etc/hosts", "code")


def test_read_of_a_file_is_no_change() -> None:
    assert render_call("read_file", {"path": "/etc/hosts"}).renderer == "tree"
