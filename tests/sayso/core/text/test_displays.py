"""The texts of a page with their signs, and the hash of them."""

import pytest

from sayso.core.text.summaries import hash_display, write_shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("ex\u0430mple", "ex\u0430⟨U+0430⟩mple"),
        ("a" + " " * 20 + "b", "a⟨20 spaces⟩b"),
    ],
)
def test_text_is_written_with_its_signs(text: str, shown: str) -> None:
    assert write_shown(text) == shown


def test_line_breaks_have_signs_only_where_the_page_marks_them() -> None:
    assert write_shown("a\nb", breaks=True) == "a↵\nb"
    assert write_shown("a\nb") == "a\nb"


def test_hash_stays_the_same_for_version_3() -> None:
    """Recorded hashes stay comparable: a change of the layout raises the version."""
    rows = [["amount", "4890"], ["path", "/srv/⟨U+202E⟩txt.exe"]]
    assert hash_display(rows) == "3:e79ddc41c143e3bb82999d8fbe78f304e50de83b8850afe8c0eb9c74bbd850aa"


def test_hash_differs_for_every_other_display() -> None:
    displays: list[list[list[str]]] = [[], [["a", "b"]], [["ab", ""]], [["a", "", "b"]], [["a"], ["b"]], [["b", "a"]]]
    assert len({hash_display(rows) for rows in displays}) == len(displays)
