"""A saved state comes back byte for byte, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.errors import InvalidInput, TooLarge
from sayso.states import MAX_STATE_BYTES, open_state, seal_state


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
    with pytest.raises(InvalidInput, match="not the one that was sealed"):
        open_state(ours.ref, theirs.blob)


def test_a_state_too_large_to_keep_is_refused() -> None:
    with pytest.raises(TooLarge, match="Trim its messages"):
        seal_state(b"x" * (MAX_STATE_BYTES + 1))
