"""What is written in one turn of the event loop is sent together, in order, and before the end of the connection."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.core.store.connection.pipeline import JoinedWrites


@asynccontextmanager
async def joining() -> AsyncIterator[tuple[JoinedWrites, socket.socket]]:
    """Yield joined writes, and the other end of their connection, which never blocks."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with theirs:
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
        try:
            yield JoinedWrites(transport), theirs
        finally:
            transport.close()


async def test_writes_of_one_turn_are_sent_together_at_its_end() -> None:
    async with joining() as (writes, peer):
        writes.write(b"one ")
        writes.write(b"two")
        try:
            early = peer.recv(100)
        except BlockingIOError:
            early = b""
        await asyncio.sleep(0)  # the next turn
        assert (early, peer.recv(100)) == (b"", b"one two")


async def test_much_is_sent_before_the_turn_ends() -> None:
    async with joining() as (writes, peer):
        for _ in range(10):
            writes.write(b"x" * 10_000)
        assert len(peer.recv(100_000)) == 70_000
        await asyncio.sleep(0)  # the next turn
        assert len(peer.recv(100_000)) == 30_000


async def test_what_was_written_is_sent_before_the_connection_closes() -> None:
    async with joining() as (writes, peer):
        writes.write(b"the end")
        writes.close()
        assert writes.is_closing()
        await asyncio.sleep(0)  # the next turn
        assert (peer.recv(100), peer.recv(100)) == (b"the end", b"")


async def test_nothing_is_sent_on_a_lost_connection() -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    async with joining() as (writes, peer):
        writes.write(b"too late")
        writes.abort()
        await asyncio.sleep(0)  # the next turn
        assert (peer.recv(100), faults) == (b"", [])
