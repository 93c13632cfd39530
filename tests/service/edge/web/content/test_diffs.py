"""Two texts are compared line by line, with numbers, changed words and runs of equal lines."""

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.edge.web.content.diffs import (
    MOST_LINES,
    Budget,
    Line,
    Part,
    Piece,
    compare_lines,
    number_lines,
    write_diff,
)

LINES = st.lists(st.sampled_from(["a\n", "b\n", "a b c\n", "a x c\n", "\n", "  d\n"]), max_size=30).map("".join)


def lines_of(text: str) -> tuple[Line, ...]:
    (part,) = number_lines(text)
    return part.lines


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


def test_one_line_is_compared_where_one_is_enough() -> None:
    (part,) = compare_lines("retries = 3", "retries = 5", least=1)
    assert [line.pieces[-1] for line in part.lines] == [Piece("removed", "3"), Piece("added", "5")]
    assert [line.state for line in compare_lines("gone", "", least=1)[0].lines] == ["removed"]
    assert compare_lines("", "", least=1) == ()


def test_texts_beyond_the_lines_of_a_budget_are_not_compared() -> None:
    budget = Budget(lines=5)
    assert compare_lines("a\nb\n", "a\nc\n", budget)
    assert compare_lines("a\nb\n", "a\nc\n", budget) == ()
    assert compare_lines("a", "", budget, least=1)


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


def test_patch_marks_the_changed_words_of_replaced_lines() -> None:
    """A line without a line break has a note below it, which does not part it from the line that replaces it."""
    patch = "@@ -1,2 +1,2 @@\n-limit = 10 EUR\n-b\n\\ No newline at end of file\n+limit = 900 EUR\n+b\n"
    lines = lines_of(patch)
    assert lines[1].pieces == tuple(
        Piece(*piece) for piece in (("same", "-"), ("same", "limit = "), ("removed", "10"), ("same", " EUR\n"))
    )
    assert Piece("added", "900") in lines[4].pieces
    assert [(line.state, line.number) for line in lines[2:4]] == [("removed", 2), ("note", None)]
    assert lines[5].pieces == (Piece("same", "+"), Piece("same", "b\n"))


def test_change_that_begins_as_a_header_is_no_header() -> None:
    """In SQL and Lua a comment begins with two dashes, so its removal looks like the head of a file."""
    lines = lines_of("--- a/x.sql\n+++ b/x.sql\n@@ -4,2 +4,2 @@\n--- drop it\n+++ keep it\n y\n--- a/z\n+++ b/z\n")
    assert [(line.state, line.number) for line in lines[3:]] == [
        ("removed", 4),
        ("added", 4),
        ("same", 5),
        ("same", None),
        ("same", None),
    ]


def test_patch_without_lengths_has_states_and_no_numbers() -> None:
    (part,) = number_lines("*** Begin Patch\n*** Update File: x\n@@ def f():\n a\n-b\n+c\n*** End Patch\n", patch=True)
    assert [line.state for line in part.lines] == [*["same"] * 4, "removed", "added", "same"]
    assert {line.number for line in part.lines} == {None}


HOSTILE = {
    "too many": ("@@ -1,99 +1,99 @@\n-a\n+b\ndiff y\n--- a/y\n+++ b/y\n@@ -3 +3 @@\n-c\n+d\n", "s-+ssss-+"),
    "too few": ("@@ -1 +1 @@\n-a\n+b\n+evil\n-gone\n c\n", "s-++-s"),
    "none": ("@@ -1,0 +1,0 @@\n+evil\n--- x\n+++ y\n", "s+ss"),
    "huge": ("@@ -999999999,999999999 +999999999,999999999 @@\n-a\n+b\n", "s-+"),
    "too huge": (f"@@ -1{'0' * 5_000} +1 @@\n-a\n+b\n@@ -1 +1 @@\n", "s-+s"),
    "length too huge": (f"@@ -1,1 +1,1{'0' * 5_000} @@\n-a\n+b\n@@ -1 +1 @@\n", "s-+s"),
    "negative": ("@@ --1,-1 +-1 @@\n-a\n+b\n@@ -1 +1 @@\n", "s-+s"),
    "other digits": ("@@ -\u0967 +\u0967 @@\n-a\n+b\n@@ -1 +1 @@\n", "s-+s"),
    "CRLF": ("@@ -1,2 +1,2 @@\r\n-a\r\n+b\r\n\r\n--- x\r\n", "s-+ss"),
    "nested": ("@@ -1,3 +1,3 @@\n-@@ -9 +9 @@\n-+++ x\n---- y\n+@@ -8 +8 @@\n+--- y\n++++ x\n", "s---+++"),
    "hunk in a hunk": ("@@ -1,9 +1,9 @@\n-a\n@@ -7 +7 @@\n-b\n+c\n", "s-s-+"),
    "only notes": ("@@ -1,9 +1,9 @@\n\\\n\\ No newline\n\\\n", "snnn"),
    "no context": ("@@ -1,3 +1,3 @@\na\n-b\n+c\n", "ss-+"),
    "before the hunk": ("- item\n+ item\n@@ -1 +1 @@\n-a\n+b", "sss-+"),
    "combined": ("@@@ -1,2 -1,2 +1,2 @@@\n- a\n +b\n++c\n@@ -1 +1 @@\n", "s-s+s"),
}


@pytest.mark.parametrize(("patch", "states"), HOSTILE.values(), ids=HOSTILE.keys())
def test_malformed_patch_shows_every_line_with_its_state(patch: str, states: str) -> None:
    lines = lines_of(patch)
    assert [line.text for line in lines] == patch.splitlines(keepends=True)
    assert "".join({"removed": "-", "added": "+"}.get(line.state, line.state[0]) for line in lines) == states


PATCH_LINES = st.sampled_from(
    [
        *("@@ -1,2 +1,3 @@\n", "@@ -7 +7,0 @@ f\n", "@@\n", "--- a/x\n", "+++ b/x\n", "diff --git a b\n"),
        *("-a b c\n", "+a x c\n", " a\n", "\n", "\r\n", "\\ No newline\n", "---\n", "+++\n", "a\n", "*** x\n"),
    ]
)


@given(st.lists(PATCH_LINES, min_size=2, max_size=20).map("".join))
def test_any_patch_keeps_its_text_and_counts_in_order(patch: str) -> None:
    lines = [line for part in number_lines(patch, patch=True) for line in part.lines]
    if lines:
        assert [line.text for line in lines] == [*patch.replace("\n", "\n\0").split("\0")[:-1]]
        assert all(text.startswith("-") for text in [line.text for line in lines if line.state == "removed"])
        assert all(text.startswith("+") for text in [line.text for line in lines if line.state == "added"])


@pytest.mark.parametrize("text", ["a\n\tb\n", "x\u202ey\nz\n"])
def test_text_of_a_comparison_has_the_signs_of_its_lines(text: str) -> None:
    written = write_diff(number_lines(text))
    assert "↵\n" in written
    assert "\u202e" not in written


WORDS = "a " * 98
STEPS = {
    "two lines repeated": lambda: compare_lines("a\n" * 1_000, "a\nb\n" * 500),
    "many lines of many words": lambda: compare_lines(f"{WORDS}x\n" * 1_000, f"{WORDS}y\n" * 1_000),
    "patch": lambda: number_lines("@@ -1,999 +1,999 @@\n" + f"-{WORDS}x\n" * 999 + f"+{WORDS}y\n" * 999),
}


@pytest.mark.parametrize("compare", STEPS.values(), ids=STEPS.keys())
def test_steps_of_a_comparison_are_bounded(compare: Callable[[], tuple[Part, ...]]) -> None:
    """A text of an agent takes few steps: difflib leaves popular lines out, and words have a budget."""
    steps = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal steps
        steps += event == "c_call"

    sys.setprofile(count)
    try:
        assert compare()
    finally:
        sys.setprofile(None)
    assert steps < 200_000


def test_lines_beyond_the_budget_are_marked_as_a_whole() -> None:
    before, after = (f"{'a ' * 98}{end}\n" * 1_000 for end in "xy")
    lines = [line for part in compare_lines(before, after) for line in part.lines]
    assert len(lines) == 2_000
    assert [piece.state for piece in lines[0].pieces] == ["same", "removed", "same"]
    assert [piece.state for piece in lines[999].pieces] == ["removed"]


def test_patch_beyond_the_budget_is_marked_by_line() -> None:
    lines = lines_of("@@ -1,999 +1,999 @@\n" + f"-{WORDS}x\n" * 999 + f"+{WORDS}y\n" * 999)
    assert {piece.state for piece in lines[1].pieces} == {"same", "removed"}
    assert lines[999].pieces == (Piece("removed", f"-{WORDS}x\n"),)
