"""Static files: from memory, compressed once, and kept by browsers forever under the URL of their content."""

import gzip
from functools import cache
from hashlib import sha256
from os import PathLike, stat_result
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from service.http.compression import accepts_gzip
from service.settings import CHECKOUT

STATIC = CHECKOUT / "templates" / "static"
_FOREVER = "public, max-age=31536000, immutable"
_CHECKED = "no-cache"  # kept, but confirmed before each use
_TEXTS = (".css", ".js", ".svg")
_DIGITS = 12


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
    body = path.read_bytes()
    packed = gzip.compress(body, mtime=0) if path.suffix in _TEXTS else None
    return _File(body, packed, sha256(body).hexdigest()[:_DIGITS])
