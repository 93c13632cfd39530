"""Long blank runs are collapsed and counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.text.summaries import collapse
from tests.steps import count_steps


def shown(text: str, *, breaks: bool = True) -> list[str]:
    return [piece.sign or piece.text for piece in collapse(text, breaks=breaks)]


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("a\n\n\n\n\nb", ["a\n", "⟨4 blank lines⟩", "\nb"]),
        ("a" + "\n" * 41 + "b", ["a\n", "⟨40 blank lines⟩", "\nb"]),
        ("\n" * 500 + "b", ["⟨500 blank lines⟩", "\nb"]),
        ("a\n" + " \t\n" * 400 + "b", ["a\n", "⟨400 blank lines⟩", "\nb"]),
        ("a\n" + "\u200b\u00a0\r\n" * 9 + "b", ["a\n", "⟨9 blank lines⟩", "\nb"]),
        ("100" + " " * 3000 + "000", ["100", "⟨3000 spaces⟩", "000"]),
        ("a" + "\t" * 20 + "b", ["a", "⟨20 tabs⟩", "b"]),
        ("a" + "\u3000" * 999 + "b", ["a", "⟨999 × U+3000⟩", "b"]),
        ("a" + " \u2800" * 50 + "b", ["a", "⟨100 blank characters⟩", "b"]),
        ("a\n" + " " * 2000 + "b", ["a\n", "⟨2000 spaces⟩", "b"]),
        ("a" + " " * 99 + "\n" * 5 + "b", ["a", "⟨99 spaces⟩", "\n", "⟨4 blank lines⟩", "\nb"]),
    ],
)
def test_collapse_counts_a_run_of_blanks(text: str, signs: list[str]) -> None:
    assert shown(text, breaks=False) == signs


@pytest.mark.parametrize(
    "text", ["a\n\n\nb", "def f():\n" + " " * 60 + "return 1", "a" + " " * 15 + "b", " " * 40 + "x"]
)
def test_ordinary_blanks_are_left_alone(text: str) -> None:
    assert shown(text, breaks=False) == [text]


def test_collapse_names_its_characters() -> None:
    (sign,) = (piece for piece in collapse("a\n\n\u202e\n\n\nb", breaks=False) if piece.sign)
    assert sign.name == "4 blank lines: U+202E"


@given(st.text(alphabet=st.sampled_from("a \n\t\r\u200b\u3000\u2764\ufe0f"), max_size=200) | st.text())
def test_the_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(piece.text for piece in collapse(text)) == text
    assert "".join(piece.text for piece in collapse(text, breaks=False)) == text


@pytest.mark.parametrize("part", [" ", "\u200b ", " \u200b\n\n\nx", " \n", "\n" + " " * 70])
def test_collapse_is_linear(part: str) -> None:
    """A search that restarts at each blank would take hours."""
    text = part * (300_000 // len(part))
    assert "".join(piece.text for piece in collapse(text)) == text


@pytest.mark.parametrize("part", ["\u05d01", "12", "1.1,", "\u05d0\u05d1 ", "\u0436\u0434 "])
def test_collapse_takes_no_steps_for_each_sign_of_an_ordinary_text(part: str) -> None:
    short, long = (part * (signs // len(part)) for signs in (600, 120_000))
    collapse(short)
    assert count_steps(lambda: collapse(long)) <= count_steps(lambda: collapse(short)) + 5
