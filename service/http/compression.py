"""Compression of pages, and masks for the tokens in them.

A page that is compressed may reflect what its address says. Its length would then tell a secret of the same page, guess
by guess (BREACH). So every page writes its form token in another way.
"""

import gzip
import secrets

from fastapi import Request
from starlette.responses import Response

_LEVEL = 6
_SMALL_BYTES = 1_000


def accepts_gzip(header: str) -> bool:
    """Return whether a client takes gzip, from its `Accept-Encoding`."""
    for part in header[:200].lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.strip().replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def compress(request: Request, response: Response) -> Response:
    """Compress a complete response, unless it is small or the client does not take it. Blocks for some milliseconds."""
    response.headers.add_vary_header("Accept-Encoding")
    if len(response.body) < _SMALL_BYTES or not accepts_gzip(request.headers.get("accept-encoding", "")):
        return response
    response.body = gzip.compress(response.body, _LEVEL, mtime=0)
    response.headers["content-encoding"] = "gzip"
    response.headers["content-length"] = str(len(response.body))
    return response


def mask_token(token: str) -> str:
    """Return a token of hex digits in another form each time."""
    raw = bytes.fromhex(token)
    mask = secrets.token_bytes(len(raw))
    return (mask + _combine(raw, mask)).hex()


def unmask_token(masked: str) -> str:
    """Return the token of a masked one; empty for anything else."""
    try:
        raw = bytes.fromhex(masked)
    except ValueError:
        return ""
    half = len(raw) // 2
    return _combine(raw[half:], raw[:half]).hex() if len(raw) == 2 * half else ""


def _combine(left: bytes, right: bytes) -> bytes:
    return bytes(first ^ second for first, second in zip(left, right, strict=True))
