"""Two texts are compared line by line, with numbers, changed words and runs of equal lines."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.edge.web.content.diffs import MOST_LINES, Part, Piece, compare_lines, number_lines, write_diff

LINES = st.lists(st.sampled_from(["a\n", "b\n", "a b c\n", "a x c\n", "\n", "  d\n"]), max_size=30).map("".join)


def join(parts: tuple[Part, ...], *states: str) -> str:
    return "".join(piece.text for part in parts for line in part.lines if line.state in states for piece in line.pieces)


@given(LINES, LINES)
def test_comparison_has_both_texts_in_order(before: str, after: str) -> None:
    parts = compare_lines(before, after)
    if parts:
        assert (join(parts, "same", "removed"), join(parts, "same", "added")) == (before, after)
        assert all(line.state == "same" for part in parts if part.collapsed for line in part.lines)


@given(LINES, LINES)
def test_numbers_are_those_of_the_old_or_the_new_text(before: str, after: str) -> None:
    old, new = before.splitlines(), after.splitlines()
    for part in compare_lines(before, after):
        for state, number, pieces in part.lines:
            assert number is not None
            text = (old if state == "removed" else new)[number - 1]
            assert "".join(piece.text for piece in pieces).removesuffix("\n") == text


def test_long_equal_runs_fold_and_leave_three_lines() -> None:
    before = "".join(f"line {place}\n" for place in range(40))
    parts = compare_lines(before, before.replace("line 20\n", "line twenty\n"))
    assert [(part.collapsed, len(part.lines)) for part in parts] == [
        (True, 17),
        (False, 3),
        (False, 2),
        (False, 3),
        (True, 16),
    ]
    assert parts[2].lines[0].pieces == (Piece("same", "line "), Piece("removed", "20"), Piece("same", "\n"))


def test_lines_that_share_little_are_marked_as_a_whole() -> None:
    (part,) = compare_lines("x = compute(1)\n", "totally different words here\nand more\n")
    assert [line.pieces[0].state for line in part.lines] == ["removed", "added", "added"]
    assert all(len(line.pieces) == 1 for line in part.lines)


def test_one_line_and_very_many_lines_are_not_numbered() -> None:
    assert compare_lines("a", "b") == number_lines("a\n") == ()
    assert compare_lines("a\n" * MOST_LINES, "b") == number_lines("a\n" * (MOST_LINES + 1)) == ()


def test_patch_has_the_numbers_of_the_files() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -7,2 +7,3 @@\n same\n-old\n+new\n+more\n"
    (part,) = number_lines(patch)
    assert [(line.state, line.number) for line in part.lines] == [
        ("same", None),
        ("same", None),
        ("same", None),
        ("same", 7),
        ("removed", 8),
        ("added", 8),
        ("added", 9),
    ]


@pytest.mark.parametrize("text", ["a\n\tb\n", "x\u202ey\nz\n"])
def test_text_of_a_comparison_has_the_signs_of_its_lines(text: str) -> None:
    written = write_diff(number_lines(text))
    assert "↵\n" in written
    assert "\u202e" not in written


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a\n" * 1_000, "a\nb\n" * 500, id="two lines repeated"),
        pytest.param(f"{'a ' * 98}x\n" * 1_000, f"{'a ' * 98}y\n" * 1_000, id="many lines of many words"),
    ],
)
def test_steps_of_a_comparison_are_bounded(before: str, after: str) -> None:
    """A text of an agent takes few steps: difflib leaves popular lines out, and words have a budget."""
    steps = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal steps
        steps += event == "c_call"

    sys.setprofile(count)
    try:
        compare_lines(before, after)
    finally:
        sys.setprofile(None)
    assert steps < 200_000


def test_lines_beyond_the_budget_are_marked_as_a_whole() -> None:
    before, after = (f"{'a ' * 98}{end}\n" * 1_000 for end in "xy")
    lines = [line for part in compare_lines(before, after) for line in part.lines]
    assert len(lines) == 2_000
    assert [piece.state for piece in lines[0].pieces] == ["same", "removed", "same"]
    assert [piece.state for piece in lines[999].pieces] == ["removed"]
