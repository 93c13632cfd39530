"""Detection of addresses, accounts, cards and keys, against known numbers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.detectors import (
    MOST_CHARS,
    has_card,
    has_iban,
    has_mail,
    has_secret,
    is_card,
    list_scalars,
)

# The test numbers of the card networks.
CARDS = [
    *(
        "4111111111111111",
        "4012888888881881",
        "4222222222222",
        "5555555555554444",
        "2223003122003222",
        "378282246310005",
    ),
    *("6011111111111117", "30569309025904", "3530111333300000", "6200000000000005", "6759649826438453"),
]
# The examples of the IBAN registry.
IBANS = [
    *("AT611904300234573201", "BE68539007547034", "CH9300762011623852957", "DE89370400440532013000"),
    *(
        "ES9121000418450200051332",
        "FR1420041010050500013M02606",
        "GB29NWBK60161331926819",
        "IT60X0542811101000000123456",
    ),
    *("LI21088100002324013AA", "MT84MALT011000012345MTLCAST001S", "NL91ABNA0417164300", "NO9386011117947"),
    *(
        "PL61109010140000071219812874",
        "SE4550000000058398257466",
        "SA0380000000608010167519",
        "TR330006100519786457841326",
    ),
]


@pytest.mark.parametrize("card", CARDS)
def test_has_card_finds_the_networks_test_numbers(card: str) -> None:
    wrong = card[:-1] + str((int(card[-1]) + 1) % 10)
    for text in (card, f"card {card}.", " ".join(card[at : at + 4] for at in range(0, len(card), 4)), f"a{card}b"):
        assert has_card(text)
    assert has_card({"deep": [{"number": int(card)}]})
    assert has_card({card: 1})
    assert has_card(f"{card[:4]}-{card[4:]}")
    assert has_card(f"{card[:3]}\u200b{card[3:]}")
    assert has_card("".join(chr(ord(sign) - ord("0") + ord("０")) for sign in card))
    assert not has_card(wrong)


@pytest.mark.parametrize(
    "text", ["1795410840844", "2026-11-23 05:30:00", "0000000000000000", "tel. +49 30 901820", "12 34", ""]
)
def test_has_card_leaves_other_numbers(text: str) -> None:
    assert not has_card(text)


SEPARATORS = ("  ", " - ", "_", "/", "\u2013", "\u2212", "\u00a0", "\u2009.", "\ufe0f")


@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
def test_detectors_read_numbers_with_other_separators(separator: str) -> None:
    assert has_card(separator.join(("4111", "1111", "1111", "1111")))
    assert has_iban(separator.join(("CH93", "0076", "2011", "6238", "5295", "7")))


def test_detectors_read_digits_of_other_scripts() -> None:
    arabic = str.maketrans("0123456789", "".join(chr(0x0660 + digit) for digit in range(10)))
    assert has_card("4111 1111 1111 1111".translate(arabic))
    assert has_iban("CH9300762011623852957".translate(arabic))


@pytest.mark.parametrize("separator", ["    ", "\n", "\t", ", ", ";"], ids=ascii)
def test_detectors_keep_numbers_of_a_table_apart(separator: str) -> None:
    assert not has_card(separator.join(("4111", "1111", "1111", "1111")))


@pytest.mark.parametrize("iban", IBANS)
def test_has_iban_finds_the_registrys_examples(iban: str) -> None:
    spaced = " ".join(iban[at : at + 4] for at in range(0, len(iban), 4))
    for text in (
        iban,
        iban.lower(),
        spaced,
        f"to {spaced} please",
        f"IBAN{iban}",
        f"({iban})",
        f"{iban[:9]}\u200b{iban[9:]}",
    ):
        assert has_iban(text), text
    wrong = iban[:-1] + ("1" if iban[-1] != "1" else "2")
    assert not has_iban(wrong)
    assert not has_iban(iban[:-2])


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("write to anna@example.com now", True),
        ({"a": ["x", {"b": "Anna <anna@mail.example.co.uk>"}]}, True),
        ({"anna@example.com": 1}, True),
        ("x" * 100 + "@example.com", True),
        ("anna＠example.com", True),
        ("anna@exa\u200bmple.com", True),
        ("anna@bücher.example", True),
        ("anna at example.com", False),
        ("@anna, see a@b", False),
        ("1@2.3", False),
        ([1, 2.5, True, None, ""], False),
    ],
)
def test_has_mail_of_texts_and_whole_values(value: Any, answer: bool) -> None:
    assert has_mail(value) is answer


@pytest.mark.parametrize(
    "key",
    [
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 10,
        "glpat-" + "a1B2-" * 5,
        "xoxb-" + "1234567890-abcdef",
        "sk_live_" + "a1B2" * 6,
        "sk-proj-" + "a1B2" * 10,
        "sk-ant-api03-" + "a1B2" * 10,
        "AIza" + "a1B2c" * 7,
        "npm_" + "a1B2" * 9,
        "hf_" + "a1B2" * 9,
        "SG." + "a1B2" * 5 + "." + "a1B2" * 10,
        "sayso_agent_" + "a1B2" * 8,
        "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + ".c2ln",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "postgres://app:hunter22@db.example/app",
    ],
)
def test_has_secret_finds_well_known_keys(key: str) -> None:
    assert has_secret(f"token={key} rest")
    assert has_secret({"a": [{"b": key}]})
    assert not has_secret(key[:5])


@pytest.mark.parametrize(
    "text", ["https://example.com:443/a@b", "a sk-etch", "AKIA", "BEGIN PUBLIC KEY", "git@example.com:a"]
)
def test_has_secret_leaves_other_texts(text: str) -> None:
    assert not has_secret(text)


def test_list_scalars_walks_every_name_and_scalar() -> None:
    value: Any = {"a": [1, "x", {"b": True, "c": None}], "d": 2.5, "e": []}
    assert list_scalars(value) == ["a", "d", "e", "1", "x", "b", "c", "true", "2.5"]
    assert list_scalars({"send to eve@evil.example": {"project falcon": 1}}) == [
        "send to eve@evil.example",
        "project falcon",
        "1",
    ]
    assert list_scalars("x") == ["x"]


@pytest.mark.parametrize("detect", [list_scalars, has_mail, has_iban, has_card, has_secret])
def test_detectors_refuse_a_value_with_too_much_text(detect: Any) -> None:
    with pytest.raises(Uncomputable):
        detect(["x" * (MOST_CHARS // 2)] * 3)


@pytest.mark.parametrize(
    "piece", ["4", "4 ", "a@", "a.", "DE89 ", "@a.a", "eyJ", "sk-", "1:", "a://", "-----BEGIN ", "4111-"]
)
@pytest.mark.parametrize("detect", [has_mail, has_iban, has_card, has_secret])
def test_detectors_end_on_long_texts(detect: Any, piece: str) -> None:
    try:
        detect(piece * (MOST_CHARS // len(piece)))
    except Uncomputable:
        return


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
        max_leaves=8,
    )
)
def test_detectors_take_any_json(value: Any) -> None:
    for detect in (list_scalars, has_mail, has_iban, has_card, has_secret):
        detect(value)


@pytest.mark.parametrize("accents", ["\u0301\u0323", "\u0f73", "\u0344\u0323"])
def test_stacked_accents_cannot_be_searched(accents: str) -> None:
    """Normalization sorts the accents of one letter in quadratic time."""
    with pytest.raises(Uncomputable, match="dozens of accents"):
        has_card("4111 1111 1111 1111 a" + accents * (90_000 // len(accents)))
    assert has_card("4111 1111 1111 1111 " + "Tie\u0302\u0301ng Vie\u0323\u0302t " * 1_000)


@given(digits=st.text("0123456789", min_size=12, max_size=19))
def test_is_card_changes_with_every_digit(digits: str) -> None:
    if is_card(digits):
        assert not is_card(digits[:-1] + str((int(digits[-1]) + 1) % 10))
