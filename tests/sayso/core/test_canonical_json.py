"""Strict reading and canonical writing of JSON; the package `rfc8785` is the oracle."""

import json
import math
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.canonical_json import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_NODES,
    Around,
    canonical_json,
    check_json,
    digest_json,
    parse_json,
)
from sayso.errors import InvalidInput, InvalidJson, TooLarge
from tests.steps import count_steps

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER + 1, MAX_INTEGER - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


@given(JSON)
def test_canonical_json_follows_rfc_8785(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-1e15, 1e15) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
)


@given(SMALL)
def test_canonical_json_round_trips(value: object) -> None:
    assert parse_json(canonical_json(value)) == value


@given(st.integers(min_value=MAX_INTEGER + 1) | st.integers(max_value=-MAX_INTEGER - 1))
def test_integers_beyond_2_to_53_stay_exact(number: int) -> None:
    written = canonical_json({"n": [number]})
    assert written == b'{"n":[%d]}' % number
    assert parse_json(written) == {"n": [number]}
    assert digest_json([number]) not in {digest_json([number + 1]), digest_json([str(number)])}


@given(st.dictionaries(TEXT, SCALARS, min_size=2, max_size=6))
def test_the_order_of_keys_makes_no_difference_to_the_digest(value: dict[str, object]) -> None:
    assert digest_json(value) == digest_json(dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"a":1,"a":2}', "appears twice"),
        (b'{"b":{"a":1,"a":1}}', "appears twice"),
        (b"NaN", "NaN is not JSON"),
        (b"[1,-Infinity]", "-Infinity is not JSON"),
        (b'"\\ud800"', "half of a surrogate pair"),
        (b'{"\\udc00":1}', "half of a surrogate pair"),
        (b"[" + b"9" * 4001 + b"]", r"\$\[0\] is an integer of more than 4000 digits"),
        (b"1e999", "not a finite number"),
        (b"[1] []", "not JSON"),
        (b"'a'", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"1" * 5000, "more than 4000 digits"),
    ],
)
def test_parse_json_refuses_ambiguous_json(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidJson, match=said):
        parse_json(raw)


def test_json_over_the_limits_is_refused() -> None:
    assert parse_json("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)) is not None
    for deep in (MAX_DEPTH + 2, 100_000):
        with pytest.raises(TooLarge, match="nested deeper"):
            parse_json("[" * deep + "]" * deep)
    with pytest.raises(TooLarge, match="more than"):
        parse_json(json.dumps(list(range(30_000))))


@pytest.mark.parametrize(
    "value", [{1: 2}, {"a": {1}}, {"a": b"x"}, {"a": math.nan}, {"a": object()}, {"a": ["\ud83d"]}]
)
def test_check_json_names_the_place_of_a_fault(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_json(value)
    assert "$" in caught.value.message


def peak_bytes(raw: str) -> int:
    """Return the peak memory of reading."""
    tracemalloc.start()
    try:
        with suppress(TooLarge):
            parse_json(raw)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "raw",
    ["[" + "[]," * 200_000 + "[]]", "[" + "{}," * 200_000 + "{}]", "[" + '"",' * 200_000 + '""]', '{"a":' * 200_000],
    ids=["lists", "objects", "texts", "deep"],
)
def test_too_many_values_are_refused_before_any_is_built(raw: str) -> None:
    with pytest.raises(TooLarge):
        parse_json(raw)
    assert peak_bytes(raw) < 6 * len(raw)


@pytest.mark.parametrize("text", ["," * 50_000, "[{" * 50_000, '\\",' * 50_000, "\\\\" * 50_000])
def test_parse_json_ignores_separators_in_strings(text: str) -> None:
    assert parse_json(json.dumps({"text": text})) == {"text": text}


def test_a_long_key_is_not_copied_for_each_value_below_it() -> None:
    """20,000 paths of 200,000 characters once took four gigabytes, for an error that never occurred."""
    raw = json.dumps({"é" * 60_000: [0] * 19_000}, ensure_ascii=False)
    assert peak_bytes(raw) < 50 * 1024 * 1024


def test_an_error_names_the_place_and_cuts_a_long_key() -> None:
    with pytest.raises(InvalidJson, match=r"^\$\.a\[1\]\.k{80} is an integer of more than 4000 digits"):
        check_json({"a": [0, {"k" * 500: 10**4000}]})


@pytest.mark.parametrize("value", [{"é": 1, "a": 2}, {"\uffee": 1, "\U0001f600": 2}, {"ß": [1.0, 1e30, 1e-9, -0.5]}])
def test_canonical_json_of_unusual_keys_and_numbers(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("text", ["-0.0", "-0", "-0e0", "-1e-400", "0.0"])
def test_parse_json_zero_has_no_sign(text: str) -> None:
    value = parse_json(f'{{"amount": {text}}}')
    assert isinstance(value, dict)
    assert str(value["amount"]) in ("0.0", "0")
    assert canonical_json(value) == b'{"amount":0}'


def test_values_around_count_towards_the_limits() -> None:
    around = Around(depth=3, values=203)
    most: list[list[Any]] = [[None] * (MAX_NODES - 204), [[] for _ in range(MAX_NODES - 204)]]
    for value in most:
        assert check_json(value, around=around) == check_json([[[value]], *[None] * 200])
        for larger in ([*value, None], [*value, "\U0001f600"]):
            with pytest.raises(TooLarge, match="more than"):
                check_json(larger, around=around)
    nested: object = 1
    for _ in range(MAX_DEPTH - 3):
        nested = [nested]
    assert check_json(nested, around=around)
    with pytest.raises(TooLarge, match="nested deeper"):
        check_json([nested], around=around)
    with pytest.raises(TooLarge, match="nested deeper"):
        parse_json("[" * (MAX_DEPTH - 2) + "1" + "]" * (MAX_DEPTH - 2), around)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_check_json_finds_fractions_that_the_standard_encoder_writes_differently(fractions: list[float]) -> None:
    written = "[" + ",".join(map(json.dumps, fractions)) + "]"
    assert check_json(fractions) == (written == canonical_json(fractions).decode())


@pytest.mark.parametrize("wrap", [lambda text: {"a": text}, lambda text: {text: 1}], ids=["value", "key"])
def test_check_json_takes_as_many_steps_for_a_long_foreign_text(wrap: Callable[[str], Any]) -> None:
    long, short = wrap("\u05d0" * 100_000), wrap("\u05d0")
    assert count_steps(lambda: check_json(long)) == count_steps(lambda: check_json(short))


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\u05d0\udc00", "\U0001f600\ud83d"])
def test_check_json_refuses_half_of_a_surrogate_pair_anywhere(text: str) -> None:
    for value in (text, [text], {text: 1}, {"a": text}, {"\U0001f600": 1, text: 1}):
        with pytest.raises(InvalidJson, match="surrogate"):
            check_json(value)
