"""Warnings of hidden characters: none for ordinary texts, one for every trick."""

import json
import unicodedata
from pathlib import Path

import pytest

from sayso.core.records.tools import find_alike
from sayso.core.text.invisible import find_hidden, reveal
from sayso.core.text.lookalikes import count_lookalikes
from sayso.core.text.suspicions import count_hidden

HERE = Path(__file__).parent


def read(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


def read_texts(name: str) -> list[str]:
    return [text for line in (HERE / "ordinary" / name).read_text().splitlines() for text in json.loads(line)["texts"]]


def is_flagged(text: str) -> bool:
    return bool(count_hidden(text) or count_lookalikes(text))


LOCALES = read_texts("locales.jsonl")
"""Prices, times, units and names of 1,082 locales of CLDR 47, each text once, without those in ASCII."""

INKLESS = [
    sign
    for sign in map(chr, (*range(0x30000), *range(0xE0000, 0xE1000)))
    if sign not in "\n\t" and unicodedata.category(sign) not in {"Cn", "Co", "Cs"} and find_hidden(sign, breaks=False)
]
SHARE = 0.01
TOOLS = [json.loads(line)["tool"] for line in (HERE / "ordinary" / "calls.jsonl").read_text().splitlines()]


def test_at_most_one_in_a_hundred_texts_of_all_locales_is_flagged() -> None:
    flagged = [text for text in LOCALES if is_flagged(text)]
    assert len(flagged) <= SHARE * len(LOCALES), flagged


def test_at_most_one_in_a_hundred_is_flagged_in_a_sentence() -> None:
    flagged = [text for text in LOCALES if is_flagged(f"Dear Ann,\r\n\r\nwe write {text} here.\r\n")]
    assert len(flagged) <= SHARE * len(LOCALES), flagged


def test_arguments_of_real_calls_are_not_flagged() -> None:
    texts = [*TOOLS, *read_texts("calls.jsonl")]
    assert [text for text in texts if is_flagged(text)] == []


@pytest.mark.parametrize("mail", read("ordinary/mails.jsonl"), ids=lambda mail: str(mail["language"]))
def test_a_mail_in_its_language_is_not_flagged(mail: dict[str, str]) -> None:
    text = mail["text"]
    assert not is_flagged(text)
    assert not is_flagged(text.replace("\r\n", "\n").replace("\n", "\r\n"))


@pytest.mark.parametrize("one", read("smuggled.jsonl"), ids=lambda one: str(one["trick"]))
def test_a_smuggled_character_is_flagged(one: dict[str, str]) -> None:
    assert count_hidden(one["text"])
    assert count_hidden(f"Dear Ann,\r\n\r\n{one['text']} is due\r\n")


@pytest.mark.parametrize(
    "place", ["pay{}pal", "{}pay", "pay{}", "ann@example.com{}", "rm -rf /srv{} /tmp", "a {} b", "{}"]
)
def test_every_character_without_ink_is_flagged_in_ascii(place: str) -> None:
    texts = [place.format(sign) for sign in INKLESS]
    assert [text for text in texts if not count_hidden(text)] == []


@pytest.mark.parametrize("one", read("lookalike.jsonl"), ids=lambda one: str(one["trick"]))
def test_a_letter_in_disguise_is_flagged(one: dict[str, str]) -> None:
    assert count_lookalikes(one["text"])


def test_an_explained_character_keeps_its_sign() -> None:
    shown = reveal("12.345,60\xa0€\r\n")
    assert [piece.sign for piece in shown if piece.sign] == ["⟨U+00A0⟩", "⟨U+000D⟩", "↵"]


@pytest.mark.parametrize(
    "pattern", [*(f"{one}*" for one in "abcdefghijklmnopqrstuvwxyz"), "*.*", "c?*", "get_*", "send_*", "inc*", "*file*"]
)
def test_one_in_a_hundred_tools_at_most_resembles_a_pattern(pattern: str) -> None:
    assert len([tool for tool in TOOLS if find_alike(frozenset({pattern}), tool)]) <= SHARE * len(TOOLS)
