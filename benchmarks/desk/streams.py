"""Many open inboxes while items come and go, and what they cost the service."""

import asyncio
from contextlib import AsyncExitStack

from benchmarks.clients import Connection
from benchmarks.desk.items import Call, make_calls, suspend_call
from benchmarks.desk.visits import read_cpu_ms, sign_in
from benchmarks.fills import SETTINGS
from benchmarks.peers.processes import Running
from sayso.core.clock import monotonic_ms
from service.assembly import assemble
from service.core.wiring import Wiring

_SETTLE_S = 3.0


class Inbox:
    """An open inbox: it follows the stream, and reads the rows that concern it as `live.js` does."""

    def __init__(self, running: Running, headers: dict[str, str], last_ms: float) -> None:
        self._running, self._headers, self._last_ms = running, headers, last_ms
        self.events = self.fetches = 0

    async def follow(self) -> None:
        """Follow the stream until cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._running.port)
        rows = await Connection.open(self._running.port, self._headers)
        head = "".join(f"{name}: {value}\r\n" for name, value in self._headers.items())
        writer.write(f"GET /live HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
        is_rows = False
        try:
            while line := await reader.readline():
                if line.startswith(b"event: "):
                    is_rows = line == b"event: rows\n"
                    self.events += 1
                elif line.startswith(b"data: ") and is_rows:
                    names = [one.split("@") for one in line[6:].decode().split()]
                    if ids := [one[0] for one in names if len(one) > 1 and one[1] and float(one[1]) <= self._last_ms]:
                        self.fetches += 1
                        await rows.send("GET", f"/rows?ids={','.join(ids)}", b"", {})
        finally:
            writer.close()
            await rows.close()


async def measure_streams(
    running: Running, url: str, count: int, per_s: int, seconds: float, last_ms: float
) -> dict[str, float]:
    """Return the share of a core that the service used, at rest and with events, and what the inboxes received."""
    headers = await sign_in(running)
    inboxes = [Inbox(running, headers, last_ms) for _ in range(count)]
    async with AsyncExitStack() as stack:
        wiring = await stack.enter_async_context(assemble(SETTINGS.model_copy(update={"redis_url": url})))
        following = [asyncio.create_task(one.follow()) for one in inboxes]
        await asyncio.sleep(_SETTLE_S)
        rest = await _measure_share(running, seconds / 2)
        asking = asyncio.create_task(_ask(wiring, per_s, seconds))
        busy = await _measure_share(running, seconds)
        await asking
        for one in following:
            one.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        alone = asyncio.create_task(_ask(wiring, per_s, seconds / 2))
        nobody = await _measure_share(running, seconds / 2)
        await alone
    return {
        "rest": rest,
        "busy": busy,
        "nobody": nobody,
        "events": sum(one.events for one in inboxes) / count,
        "fetches": sum(one.fetches for one in inboxes) / count,
    }


async def _ask(wiring: Wiring, per_s: int, seconds: float) -> None:
    calls: list[Call] = [*make_calls(int(per_s * seconds))]
    began_ms = monotonic_ms()
    for number, call in enumerate(calls):
        await asyncio.sleep(max(0.0, number / per_s - (monotonic_ms() - began_ms) / 1000))
        await suspend_call(wiring, call)


async def _measure_share(running: Running, seconds: float) -> float:
    """Return the processor time of the service a second, in percent of a core."""
    began_ms, used_ms = monotonic_ms(), read_cpu_ms(running)
    await asyncio.sleep(seconds)
    return (read_cpu_ms(running) - used_ms) / (monotonic_ms() - began_ms) * 100
