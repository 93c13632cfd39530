"""Writes that share a system call. uvloop sends each write at once."""

import asyncio
from typing import Any

_MOST_BYTES = 65_536


class JoinedWrites:
    """A transport that sends what is written in one turn of the event loop together, in pieces of 64 kB."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send the data at the end of this turn or before, unless the connection is lost."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:  # the transport then asks the writer to wait for a slow reader
            self._flush()

    def close(self) -> None:
        """Send what was written, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held, self._bytes = self._held, [], 0
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))
