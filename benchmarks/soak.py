"""Measure the memory of a service that refuses requests: `make soak MINUTES=10`.

Eight connections send what a real service refuses: forms at the sign-in, requests without a session or a key, bad
signatures, and bodies that do not fit. The resident memory is read every 30 s. After the first minute it may grow by
`GROWTH_BYTES`; the bodies of one second alone are larger.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import uvloop

from benchmarks.clients import Stamps
from benchmarks.peers.processes import Running
from benchmarks.peers.sayso import running_sayso
from demo.stacks import find_ports
from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.signing import new_signing_secret, sign_message

GROWTH_BYTES = 24 * 1024 * 1024
EVERY_S, WARM_S = 30, 60
_CONNECTIONS = 8
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"


class Refused(NamedTuple):
    """A request that is refused."""

    path: str
    body: bytes
    headers: dict[str, str]

    def write(self) -> bytes:
        """Return the request as it is sent."""
        headers = {"Host": "127.0.0.1", **self.headers, "Content-Length": str(len(self.body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + self.body


def list_refused(key: str) -> list[Refused]:
    """Return requests of each kind: of strangers and of an agent, small and as large as any limit."""
    long, form, plain = "x" * 2_000_000, {"Content-Type": _FORM}, {"Content-Type": _JSON}
    agent = {**plain, "Authorization": f"Bearer {key}"}
    at_s = now_ms() // 1000
    signed = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at_s),
        "webhook-signature": sign_message(new_signing_secret(), "msg_1", at_s, b""),
        **plain,
    }
    kept = urlencode({"answer": "deny", "reason": "x" * 11_000}).encode()
    return [
        Refused("/sign-in", urlencode({"name": "anna", "reason": long}).encode(), form),
        Refused("/sign-in", urlencode({"name": "anna", "password": "wrong", "reason": long[:15_000]}).encode(), form),
        Refused("/sign-in", urlencode([("name", "a"), ("name", long[:15_000])]).encode(), form),
        Refused("/items/sus_1/i1", kept, form),
        Refused("/items/sus_1/i1", urlencode({"answer": "deny", "reason": long}).encode(), form),
        Refused("/api/v1/sessions", json.dumps({"name": "anna", "password": long[:15_000]}).encode(), plain),
        Refused("/api/v1/sessions", json.dumps({"name": "anna", "password": long[:200_000]}).encode(), plain),
        Refused("/api/v1/suspensions", json.dumps({"calls": long}).encode(), plain),
        Refused("/api/v1/suspensions", json.dumps({"calls": [{"tool": long[:200_000]}]}).encode(), agent),
        Refused("/api/v1/suspensions", b'{"a":1,"a":"' + long[:200_000].encode() + b'"}', agent),
        Refused("/api/v1/runs", json.dumps({"agent": "none", "input": long[:100_000]}).encode(), agent),
        Refused("/api/aap/v1/requests", long[:200_000].encode(), plain),
        Refused("/hooks/decisions", long[:200_000].encode(), signed),
    ]


def main(minutes: float) -> int:
    """Send, print the memory, and return 1 if it grows beyond the bound."""
    stamps = Stamps()
    with (
        tempfile.TemporaryDirectory(prefix="sayso-soak-") as home,
        running_sayso(Path(home), find_ports(), stamps.path, "everysec") as running,
    ):
        return uvloop.run(_soak(running, minutes * 60))


async def _soak(running: Running, seconds: float) -> int:
    statuses: Counter[int] = Counter()
    kinds = [one.write() for one in list_refused(running.key)]
    sending = [
        asyncio.create_task(_send(running.port, cycle(kinds[place:] + kinds[:place]), statuses))
        for place in range(_CONNECTIONS)
    ]
    began_ms, read = monotonic_ms(), [(0.0, running.resident_bytes("service"))]
    print(
        f"| seconds | refused | resident memory of the service (MB) |\n| --- | --- | --- |\n{_row(read[0], statuses)}"
    )
    while read[-1][0] < seconds:
        done, _ = await asyncio.wait(sending, timeout=min(EVERY_S, seconds), return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
        read.append(((monotonic_ms() - began_ms) / 1000, running.resident_bytes("service")))
        print(_row(read[-1], statuses), flush=True)
    for one in sending:
        one.cancel()
    await asyncio.gather(*sending, return_exceptions=True)
    warm = [size for at_s, size in read if at_s >= min(WARM_S, seconds / 2)]
    growth = max(warm) - warm[0]
    print(f"\nGrowth after the warm-up: {growth / 1e6:.1f} MB, at most {GROWTH_BYTES / 1e6:.1f}. {dict(statuses)}")
    return int(growth > GROWTH_BYTES or min(statuses) < 400)


def _row(read: tuple[float, int], statuses: Counter[int]) -> str:
    return f"| {read[0]:.0f} | {statuses.total():,} | {read[1] / 1e6:.1f} |"


async def _send(port: int, kinds: Iterator[bytes], statuses: Counter[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for content in kinds:
            writer.write(content)
            await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            statuses[int(head.split(" ", 2)[1])] += 1
            lines = (line.partition(":") for line in head.split("\r\n"))
            length = next((size for name, _, size in lines if name == "content-length"), "0")
            await reader.readexactly(int(length))
    finally:
        writer.close()
