import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.edge.web.content.diffs import MOST_WORDS, compare_texts

LONG = "the quick brown fox jumps over the lazy dog and runs away from here"


def test_compare_texts_marks_the_changed_words() -> None:
    assert compare_texts(LONG, LONG.replace("lazy", "tired")) == (
        ("same", "the quick brown fox jumps over the "),
        ("removed", "lazy"),
        ("added", "tired"),
        ("same", " dog and runs away from here"),
    )


@pytest.mark.parametrize(("before", "after"), [("250", "120"), ("", LONG), (LONG, "")])
def test_compare_texts_of_short_values_is_empty(before: str, after: str) -> None:
    assert compare_texts(before, after) == ()


def test_compare_texts_with_two_lines_is_by_word() -> None:
    assert ("added", "c") in compare_texts("a\nb", "a\nc")


def test_compare_texts_above_the_limit_is_one_change() -> None:
    before, after = (" ".join(f"{sign}{place}" for place in range(MOST_WORDS)) for sign in "ab")
    assert [piece.state for piece in compare_texts(f"x {before} z", f"x {after} z")] == [
        "same",
        "removed",
        "added",
        "same",
    ]


@given(st.text("ab \n", min_size=1), st.text("ab \n", min_size=1))
def test_compare_texts_keeps_both_texts(before: str, after: str) -> None:
    pieces = compare_texts(before + LONG, after + LONG)
    assert "".join(piece.text for piece in pieces if piece.state != "added") == before + LONG
    assert "".join(piece.text for piece in pieces if piece.state != "removed") == after + LONG
