"""Measure how long one hostile request holds the event loop: `make bench ARGS=--holds`.

Each request goes alone to an app in this process. A task beside it measures the longest processor time between two of
its turns, in milliseconds. Every other request waits that long.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from httpx import ASGITransport, AsyncClient

from launch.server import running_server
from service.app import create_app
from service.auth.credentials import TENANT
from service.settings import Settings
from service.wiring import Wiring, settle_memory

LIMIT_MS = 50.0
"""The limit for every request."""

_SUSPENSIONS, _RUNS, _RULES = "/api/v1/suspensions", "/api/v1/runs", "/api/v1/policy/check"
_BODY_BYTES = 262_000
_STATE_BYTES = 5_700_000
_POLICY = "version: 1\ndefault: request_approval\nrules: []\n"


class Attempt(NamedTuple):
    """One hostile request."""

    name: str
    path: str
    body: bytes


class Held(NamedTuple):
    """How long one request held the loop, its duration and its status."""

    held_ms: float
    took_ms: float
    status: int
    name: str


def list_attempts() -> Iterator[Attempt]:
    """Yield requests with schemas, JSON or rules that are built to cost as much as possible."""
    for name, schema, args in _list_schemas():
        yield Attempt(f"schema: {name}", _SUSPENSIONS, _request_call(schema, args))
    texts = {
        "lists": b'{"a":[' + b"[]," * (_STATE_BYTES // 3) + b"[]]}",
        "texts": b'{"a":[' + b'"",' * (_STATE_BYTES // 3) + b'""]}',
        "escapes": b'{"a":"' + b"\\\\" * (_STATE_BYTES // 2) + b'"}',
        "unknown members": json.dumps({f"k{i}": 1 for i in range(19_000)}).encode(),
        "calls of nothing": b'{"calls":[' + b"{}," * (_BODY_BYTES // 3) + b"{}]}",
        "a long key": json.dumps({"é" * 60_000: [0] * 19_000}, ensure_ascii=False).encode(),
    }
    for name, body in texts.items():
        yield Attempt(f"JSON: {name}", _SUSPENSIONS, body)
    run = {"agent": "demo", "input": "x" * 100_000, "context": {"x": list(range(18_000))}}
    yield Attempt("JSON: a large context", _RUNS, json.dumps(run).encode())
    conditions = "".join(f"- {{id: r{i}, action: deny, when: 'args.a > {i}'}}\n" for i in range(2_000))
    rules = {
        "lists": "rules: [" + "[]," * 60_000 + "]",
        "conditions": f"version: 1\ndefault: deny\nrules:\n{conditions}",
        "depth": "[" * 200_000,
        "aliases": "a: &a [x,x]\n" + "".join(f"b{i}: &b{i} [*a,*a,*a]\n" for i in range(5_000)),
        "quotes": "'" * 250_000,
    }
    for name, text in rules.items():
        yield Attempt(f"rules: {name}", _RULES, json.dumps({"text": text}).encode())


def _list_schemas() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    several = {"anyOf": [{"required": ["x"], "properties": {"x": {"$ref": "#/$defs/a"}}}] * 3}
    deep: Any = 1
    for _ in range(24):
        deep = {"x": deep}
    doubled = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(25)}
    yield "nothing hostile", {"type": "object"}, {}
    yield "recursion", {"$defs": {"a": several}, "$ref": "#/$defs/a"}, deep
    yield "doubled references", {"$defs": {**doubled, "d25": {"type": "string"}}, "$ref": "#/$defs/d0"}, {"a": 1}
    yield (
        "many alternatives",
        {"properties": {"x": {"items": {"anyOf": [{"type": "string"}] * 30}}}},
        {"x": [1] * 15_000},
    )
    yield "many properties", {"properties": {f"p{i}": {"type": "string"} for i in range(6_000)}}, {"p1": 1}
    yield "repeated pattern", {"properties": {"x": {"pattern": "((a{50}){50}){4}"}}}, {"x": "a" * 200_000}
    yield "looking pattern", {"properties": {"x": {"pattern": "^(?=a)(a|a|aa)*$"}}}, {"x": "a" * 200_000 + "b"}
    yield "long enum", {"properties": {"x": {"enum": list(range(8_000))}}}, {"x": "z"}
    yield "unique items", {"properties": {"x": {"uniqueItems": True}}}, {"x": [{"a": i} for i in range(8_000)]}
    yield "many values", {"type": "object"}, {"x": list(range(19_000))}
    yield "many keys", {"type": "object"}, {f"é{i}": i for i in range(15_000)}
    yield "many fractions", {"type": "object"}, {"x": [1.5e30] * 19_000}


def _request_call(schema: dict[str, Any], args: dict[str, Any]) -> bytes:
    call = {"tool": "t", "args": args, "definition": {"parameters": schema}}
    return json.dumps({"mode": "poll", "calls": [call]}).encode()


class LoopProbe:
    """The longest processor time between two turns of a task, in milliseconds."""

    def __init__(self) -> None:
        self.worst_ms = 0.0

    async def run(self) -> None:
        """Measure until it is cancelled."""
        while True:
            began_s = time.thread_time()
            await asyncio.sleep(0.001)
            self.worst_ms = max(self.worst_ms, (time.thread_time() - began_s) * 1000)


async def measure(url: str, home: Path) -> list[Held]:
    """Return how long each attempt held the loop, the longest first."""
    policy = home / "policy.yaml"
    policy.write_text(_POLICY, encoding="utf-8")
    app = create_app(Settings(redis_url=url, policy=policy, home=home))
    probe = LoopProbe()
    async with app.router.lifespan_context(app):
        wiring: Wiring = app.state.process.tenant(TENANT)
        _, key = await wiring.api_keys.create("demo")
        settle_memory()  # as the service does when it has started
        probing = asyncio.create_task(probe.run())
        found = [await _send(app, key, probe, attempt) for attempt in list_attempts() for _ in range(2)]
        probing.cancel()
    return sorted(found, reverse=True)


async def _send(app: Any, key: str, probe: LoopProbe, attempt: Attempt) -> Held:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://127.0.0.1:8321", timeout=60) as client:
        await asyncio.sleep(0.01)
        probe.worst_ms, began_s = 0.0, time.perf_counter()
        answer = await client.post(attempt.path, content=attempt.body, headers=headers)
        took_ms = (time.perf_counter() - began_s) * 1000
        await asyncio.sleep(0.01)
    return Held(probe.worst_ms, took_ms, answer.status_code, attempt.name)


def main() -> int:
    """Measure, print, and return 1 if a request held the loop longer than the limit."""
    with tempfile.TemporaryDirectory(prefix="sayso-holds-") as folder, running_server(Path(folder) / "store") as url:
        found = uvloop.run(measure(url, Path(folder)))
    print("| request | held the loop (ms) | took (ms) | status |\n| --- | --- | --- | --- |")
    for one in found:
        print(f"| {one.name} | {one.held_ms:.1f} | {one.took_ms:.0f} | {one.status} |")
    return 1 if found[0].held_ms > LIMIT_MS else 0
