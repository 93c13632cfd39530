"""Letters that are not what they look like are found; ordinary words of any language are not."""

import pytest
from confusable_homoglyphs.confusables import confusables_data
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.text.lookalikes import find_lookalikes


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("hooks.ex\u0430mple.net", "\u0430"),
        ("\u0430\u0440\u0440\u04cf\u0435.com", "\u0430\u0440\u0440\u04cf\u0435"),
        ("r\u03bfot", "\u03bf"),
        ("\u0391\u0392\u0395", "\u0391\u0392\u0395"),
        ("\uff28ello", "\uff28"),
        ("\U0001d429ay", "\U0001d429"),
        ("paypa\u0131", "\u0131"),
        ("paypal.com\u2215x", "\u2215"),
        ("caf\u0065\u0301", "\u0301"),
        ("a\u0324\u0325\u0330", "\u0324\u0325\u0330"[2:]),
        ("\u0441\u0456ty and \u043c\u0438\u0440", "\u0441\u0456"),
    ],
)
def test_find_lookalikes_marks_what_passes_for_another(text: str, marked: str) -> None:
    assert "".join(text[place] for place in find_lookalikes(text)) == marked


@pytest.mark.parametrize(
    "text",
    [
        "Plain ASCII, 100 %",
        "Zürich, naïve café, Łódź, Đorđe, Straße, Ø",
        "Tiếng Việt",
        "Привет, мир",
        "Ελλάδα",
        "שלום עולם",
        "سلام ١٢٣",
        "नमस्ते दुनिया",
        "東京タワーとABC",
        "한국어 텍스트",
        "価格：100円 東京／大阪",
        "it’s “quoted” – 2024–2025 … №",
    ],
)
def test_find_lookalikes_leaves_ordinary_words_alone(text: str) -> None:
    assert find_lookalikes(text) == []


LETTERS = sorted(
    sign
    for sign, others in confusables_data.items()
    if len(sign) == 1
    and sign.isalpha()
    and not sign.isascii()
    and any(one["c"].isascii() and one["c"].isalpha() and len(one["c"]) == 1 for one in others)
)


@given(st.sampled_from(LETTERS))
def test_every_look_alike_of_unicode_in_an_english_word_is_marked(letter: str) -> None:
    assert find_lookalikes(f"pay{letter}pal") == [3]


@given(st.text())
def test_positions_are_in_order_and_inside_the_text(text: str) -> None:
    places = find_lookalikes(text)
    assert places == sorted(set(places))
    assert all(0 <= place < len(text) and not text[place].isascii() for place in places)


@pytest.mark.parametrize("word", ["\u05d01" * 120_000, "\u05d0\u0430" * 120_000, "a\u05d0" * 120_000])
def test_find_lookalikes_reads_a_word_of_240_kb_once(word: str) -> None:
    """The script of most letters is counted once, so that the cost grows with the length of a word alone."""
    marked = find_lookalikes(word)
    assert marked == [place for place, sign in enumerate(word) if sign == word[1] and not sign.isascii()]


@pytest.mark.parametrize("accents", ["\u0301\u0323", "\u0323\u0301", "\u0334\u0323\u0301"])
def test_find_lookalikes_marks_any_number_of_accents(accents: str) -> None:
    """To sort the accents of one letter by their classes takes quadratic time: 90 s for a text of 240 kB."""
    text = "q" + accents * (240_000 // len(accents))
    assert find_lookalikes(text) == [*range(1, len(text))]
