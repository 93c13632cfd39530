"""Sealed states open to the same bytes, or not at all."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject
from sayso.core.records.run_state import MAX_STATE_BYTES, open_state, read_state, seal_state, write_state
from sayso.errors import InvalidInput, InvalidJson, TooLarge


@given(st.binary(max_size=6000))
def test_a_sealed_state_opens_to_the_same_bytes(raw: bytes) -> None:
    sealed = seal_state(raw)
    assert open_state(sealed.ref, sealed.blob) == raw


@pytest.mark.parametrize("size", [10, 5000])
def test_a_state_with_any_byte_changed_is_refused(size: int) -> None:
    sealed = seal_state(bytes(range(256)) * (size // 256 + 1))
    for place in range(0, len(sealed.blob), max(1, len(sealed.blob) // 40)):
        altered = bytearray(sealed.blob)
        altered[place] ^= 1
        try:
            opened = open_state(sealed.ref, bytes(altered))
        except InvalidInput:
            continue
        assert opened == bytes(range(256)) * (size // 256 + 1), "only gzip's own header may differ"


def test_another_runs_state_is_refused() -> None:
    ours, theirs = seal_state(b'{"run":1}'), seal_state(b'{"run":2}')
    with pytest.raises(InvalidInput, match="does not match its digest"):
        open_state(ours.ref, theirs.blob)


def test_a_state_too_large_to_keep_is_refused() -> None:
    with pytest.raises(TooLarge, match="Trim its messages"):
        seal_state(b"x" * (MAX_STATE_BYTES + 1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"messages": [{"content": "hi"}, {"content": {1, 2}}]}, "$.messages[1].content is a set"),
        ({"a": {"b": b"x"}}, "$.a.b is a bytes"),
        ({"a": float("nan")}, "$.a is not a finite number"),
        ({"a": {3: 4}}, "$.a has the key 3"),
        ({"a": "\ud800"}, "$.a holds half of a surrogate pair"),
    ],
)
def test_write_state_names_the_key_of_a_fault(value: Any, message: str) -> None:
    with pytest.raises(InvalidJson, match=re.escape(message)):
        write_state(value)


def test_write_state_round_trips_a_large_state() -> None:
    state: JsonObject = {"messages": [{"content": "x" * 1024}] * 2000}
    assert read_state(write_state(state)) == state


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a": {"b": NaN}}', "$.a.b is not a finite number"),
        (b'{"a": 1, "a": 2}', "The key 'a' appears twice"),
        (b"[1]", "is a list, not a JSON object"),
        (b"{", "not JSON"),
        (b"\xff", "not readable JSON"),
        (b"[" * 100_000, "not readable JSON"),
    ],
)
def test_read_state_refuses_invalid_json(raw: bytes, message: str) -> None:
    with pytest.raises(InvalidJson, match=re.escape(message)):
        read_state(raw)


def test_read_state_finds_a_duplicate_key_in_linear_time() -> None:
    """Counting each key among all took hours for four megabytes."""
    raw = "{" + ",".join(f'"k{n}":0' for n in range(200_000)) + ',"k199999":1}'
    with pytest.raises(InvalidJson, match="'k199999' appears twice"):
        read_state(raw.encode())
