"""Masked tokens are read again, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from service.edge.http.assets import mask_token, unmask_token


@given(st.binary(max_size=40))
def test_masked_token_is_read_again(raw: bytes) -> None:
    masked = mask_token(raw.hex())
    assert unmask_token(masked) == raw.hex()
    assert len(masked) == 4 * len(raw)


def test_token_of_odd_length_is_no_token() -> None:
    assert unmask_token("c" * 6) == unmask_token("c" * 5) == unmask_token("zz") == ""
