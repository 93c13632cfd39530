"""Writes that share a system call. uvloop sends each write at once."""

import asyncio
from typing import Any


class JoinedWrites:
    """A transport that sends what is written in one turn of the event loop together, at its end."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send the data at the end of this turn, unless the connection is lost before."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        """Send what was written, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))
