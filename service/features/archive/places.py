"""Places of archived segments: a folder, or a bucket with the interface of S3."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from sayso.errors import Unavailable
from service.core.outgoing.buckets import Bucket
from service.core.outgoing.http import Posts
from service.core.settings import Settings

Result = TypeVar("Result")
_ATTEMPT_S = 60.0
_PARTIAL = ".partial"
_MOST_BYTES = 512 * 1024 * 1024  # of one segment


class Place(Protocol):
    """Where segments lie by their paths. All raise `Unavailable`."""

    name: str

    async def put(self, path: str, body: bytes) -> None: ...

    async def get(self, path: str) -> bytes | None: ...

    async def delete(self, path: str) -> None: ...

    async def list(self, prefix: str) -> list[str]: ...


def open_place(settings: Settings) -> Place:
    """Return the place that the settings name."""
    parts = urlsplit(settings.archive or "")
    if parts.scheme == "file":
        return Folder(Path(unquote(parts.path)))
    posts = Posts(
        loopback=settings.aap_allow_loopback,
        internal=settings.receivers,
        attempt_s=_ATTEMPT_S,
        most_bytes=_MOST_BYTES,
        proxy=settings.egress_proxy,
    )
    return Bucket(settings.archive or "", posts)


class Folder:
    """Segments as files. One is there whole, with its name on the disk, or not at all."""

    def __init__(self, root: Path) -> None:
        self._root, self.name = root, str(root)

    async def put(self, path: str, body: bytes) -> None:
        await self._run(path, lambda file: _write(file, body))

    async def get(self, path: str) -> bytes | None:
        return await self._run(path, lambda file: file.read_bytes() if file.exists() else None)

    async def delete(self, path: str) -> None:
        await self._run(path, _delete)

    async def list(self, prefix: str) -> list[str]:
        files = await self._run(prefix, lambda folder: [file for file in folder.rglob("*") if file.is_file()])
        return sorted(str(file.relative_to(self._root)) for file in files)

    async def _run(self, path: str, step: Callable[[Path], Result]) -> Result:
        try:
            return await asyncio.to_thread(step, self._root / path)
        except OSError as error:
            raise Unavailable(f"The archive {self.name} cannot be used: {error}.") from error


def _delete(file: Path) -> None:
    for path in (file.with_suffix(_PARTIAL), file):
        path.unlink(missing_ok=True)


def _write(file: Path, body: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    partial = file.with_suffix(_PARTIAL)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o640), "wb") as opened:
        opened.write(body)
        opened.flush()
        os.fsync(opened.fileno())
    partial.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the file's name
    finally:
        os.close(folder)
