import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.text.invisible import Piece, find_hidden, reveal, write_signs


def test_a_plain_text_is_one_piece() -> None:
    assert reveal("Zürich, 東京 and 100 €") == [Piece("Zürich, 東京 and 100 €")]
    assert reveal("") == []


def test_reveal_names_a_bidi_override() -> None:
    shown = reveal("/srv/\u202etxt.exe")
    assert [piece.sign or piece.text for piece in shown] == ["/srv/", "⟨U+202E⟩", "txt.exe"]
    assert shown[1].name == "right-to-left override"


def test_reveal_marks_every_invisible_character() -> None:
    hidden = "\0\x07\x1b\x7f\x85\xad"
    hidden += "\u034f\u061c\u115f\u180e\u200b\u200d\u200e\u2028\u2060\u2066\u2800\u3000\u3164\ufe00\ufeff"
    hidden += "\uffa0\ufff9\U000e0041\U000e0100\ue000\xa0\u2003\u0378"
    assert len(find_hidden(hidden, breaks=False)) == len(hidden)
    assert all(piece.sign for piece in reveal(hidden))


def test_line_breaks_and_tabs_get_faint_signs() -> None:
    assert [piece.sign for piece in reveal("a\n\tb") if piece.soft] == ["↵", "⇥"]
    assert find_hidden("a\n\tb", breaks=False) == []


def test_prose_keeps_its_line_breaks_without_signs() -> None:
    assert reveal("a\nb\tc", breaks=False) == [Piece("a\nb\tc")]
    assert reveal("a\r\nb", breaks=False)[1].sign == "⟨U+000D⟩"


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


@pytest.mark.parametrize(
    "emoji", [FAMILY, "\u2764\ufe0f", "\U0001f3f3\ufe0f\u200d\U0001f308", "5\ufe0f\u20e3", "\U0001f44b\U0001f3fd"]
)
def test_an_emoji_is_one_piece_without_signs(emoji: str) -> None:
    assert reveal(f"a {emoji}!") == [Piece(f"a {emoji}!")]


@pytest.mark.parametrize(
    "text",
    [
        "a\ufe0f",
        "\u2764\ufe0f\ufe0f",
        "pay\u200dpal",
        "\U0001f468\u200d",
        "\u200d\U0001f468",
        "\U0001f468\u200d\u200d\U0001f469",
    ],
)
def test_joiners_and_selectors_elsewhere_are_marked(text: str) -> None:
    assert find_hidden(text, breaks=False)
    assert any(piece.sign for piece in reveal(text))


def test_a_look_alike_keeps_its_letter_and_gets_its_number() -> None:
    shown = reveal("ex\u0430mple")
    assert [(piece.text, piece.sign) for piece in shown] == [("ex", ""), ("\u0430", "⟨U+0430⟩"), ("mple", "")]
    assert shown[1].name == "cyrillic small letter a"
    assert write_signs("ex\u0430mple") == "ex\u0430⟨U+0430⟩mple"
    assert find_hidden("ex\u0430mple", breaks=False) == []


@pytest.mark.parametrize("sign", ["\U0001d159", "\ufffc", "\U00016fe4", "\U0001107f"])
def test_a_symbol_without_ink_is_shown_by_its_number(sign: str) -> None:
    assert reveal(f"a{sign}")[1].sign == f"⟨U+{ord(sign):04X}⟩"


@given(st.text())
def test_the_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(piece.text for piece in reveal(text)) == text
