"""Requests of signed-in people, as browsers send them."""

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.clients import Connection
from benchmarks.measures import quantile
from benchmarks.peers.processes import Running
from sayso.core.clock import monotonic_ms

_ASSET = re.compile(r'"(/static/[^"]+)"')


class Timing(NamedTuple):
    """Times of a page, ms, its processor time in the service, and its size as sent."""

    p50_ms: float
    p95_ms: float
    cpu_ms: float
    size: int


def read_cpu_ms(running: Running) -> float:
    """Return the processor time that the service has used."""
    threads = Path(f"/proc/{running.processes['service'].pid}/task").glob("*/schedstat")
    return sum(int(one.read_text(encoding="ascii").split()[0]) for one in threads) / 1e6


async def sign_in(running: Running) -> dict[str, str]:
    """Return the headers of a signed-in browser."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", timeout=60) as http:
        answer = await http.post("/api/v1/sessions", json={"name": "admin", "password": running.password})
    cookie = f"sayso_session_{running.port}={answer.json()['token']}; sayso_skipped=1"
    return {"Cookie": cookie, "Accept-Encoding": "gzip", "X-Sayso-Live": "1"}


async def measure_paths(running: Running, paths: Sequence[str], count: int) -> Timing:
    """Request the paths one after another, `count` times in all; raises `RuntimeError` for a broken page."""
    connection = await Connection.open(running.port, await sign_in(running))
    times: list[float] = []
    body = b""
    await connection.send("GET", paths[0], b"", {})
    used_ms = read_cpu_ms(running)
    for number in range(count):
        began_ms = monotonic_ms()
        status, body = await connection.send("GET", paths[number % len(paths)], b"", {})
        times.append(monotonic_ms() - began_ms)
        if status != httpx.codes.OK:
            raise RuntimeError(f"{paths[number % len(paths)]} answered {status}: {body[:300]!r}")
    cpu_ms = (read_cpu_ms(running) - used_ms) / count
    await connection.close()
    return Timing(quantile(times, 0.5), quantile(times, 0.95), cpu_ms, len(body))


async def measure_first_view(running: Running) -> int:
    """Return the bytes of the inbox and of everything that its head loads."""
    connection = await Connection.open(running.port, await sign_in(running))
    _, page = await connection.send("GET", "/", b"", {})
    total = len(page)
    for path in dict.fromkeys(_ASSET.findall(gzip.decompress(page).decode())):
        total += len((await connection.send("GET", path, b"", {}))[1])
    await connection.close()
    return total
