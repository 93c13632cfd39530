"""Static files: from memory, compressed once, and kept by browsers forever under the URL of their content.

Compression of pages, and masks for the tokens in them.

A page that is compressed may reflect what its address says. Its length would then tell a secret of the same page, guess
by guess (BREACH). So every page writes its form token in another way.
"""

import gzip
import secrets
from functools import cache
from hashlib import sha256
from os import PathLike, stat_result
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from service.core.settings import CHECKOUT


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
    if len(response.body) < 1_000 or not accepts_gzip(request.headers.get("accept-encoding", "")):
        return response
    response.body = gzip.compress(response.body, 6, mtime=0)
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


STATIC = CHECKOUT / "templates" / "static"
BUNDLES = {
    "page.js": ("times", "menus", "connection", "presence", "notices", "live", "stream", "keys"),
    "list.js": ("rows", "inbox", "alike", "pane", "split", "select", "filters", "more"),
    "call.js": ("edit", "item"),
    "decision.js": ("settle", "arm", "shown", "folds", "leave"),
}
"""Scripts of the two pages that are opened most, each bundle sent as one file in this order."""

_FOREVER = "public, max-age=31536000, immutable"
_CHECKED = "no-cache"  # kept, but confirmed before each use


class _File(NamedTuple):
    body: bytes
    packed: bytes | None
    version: str


@cache
def asset(name: str) -> str:
    """Return the URL of a static file; it changes with the content, so browsers may keep it."""
    return f"/static/{name}?v={_read(STATIC / name).version}"


class Assets(StaticFiles):
    """The files below `STATIC`."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    def lookup_path(self, path: str) -> tuple[str, stat_result | None]:
        """Find a file, or a bundle, which no file holds."""
        if path in BUNDLES:
            return str(STATIC / path), (STATIC / f"{BUNDLES[path][0]}.js").stat()
        return super().lookup_path(path)

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return the file; a URL with the hash of its content never changes."""
        file, asked = _read(Path(full_path)), Headers(scope=scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
        headers = {
            "Cache-Control": _FOREVER if given == file.version else _CHECKED,
            "ETag": f'"{file.version}"',
            "Vary": "Accept-Encoding",
        }
        if self.is_not_modified(Headers(headers), asked):
            return NotModifiedResponse(Headers(headers))
        packed = file.packed if accepts_gzip(asked.get("accept-encoding", "")) else None
        if packed is not None:
            headers["Content-Encoding"] = "gzip"
        media_type = super().file_response(full_path, stat_result, scope, status_code).media_type
        return Response(file.body if packed is None else packed, status_code, headers, media_type)


@cache
def _read(path: Path) -> _File:
    names = BUNDLES.get(path.name, ()) if path.parent == STATIC else ()
    body = b"".join((STATIC / f"{name}.js").read_bytes() for name in names) if names else path.read_bytes()
    packed = gzip.compress(body, 9, mtime=0) if path.suffix in (".css", ".js", ".svg") else None
    return _File(body, packed, sha256(body).hexdigest()[:12])
