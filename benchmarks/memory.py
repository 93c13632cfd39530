"""Measure what rules that remember cost an allowed call: `make bench ARGS=--memory`.

Calls are suspended through the desk under three sets of rules, in turn: without memory, with memory for another tool,
and with a limit and a budget for this one. The store syncs each second, so that its disk does not hide the difference.
"""

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from redis import Redis

from launch.server import running_server
from sayso.core.clock import monotonic_ms, new_id
from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec, RunRef
from sayso.core.records.tools import ToolCall, ToolDefinition
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import COUNTS, MOST
from service.core.wiring import Wiring

CALLS = 3_000
_TURN = 50
_TOOL = ToolDefinition(name="refund")
_REMEMBERS = """
version: 1
default: allow
rules:
  - id: small
    tool: {tool}
    action: allow
    limit: {{count: 1000000, per: 1h, by: [agent, args.order]}}
    budget: {{sum: args.amount, max: 1000000000, per: 1d, by: agent}}
"""
_RULES = {
    "without memory": "version: 1\ndefault: allow\nrules: []\n",
    "memory of another tool": _REMEMBERS.format(tool="other"),
    "memory of this tool": _REMEMBERS.format(tool="refund"),
}


async def measure(url: str, home: Path, count: int) -> dict[str, list[float]]:
    """Return how long each call took, ms, by the rules."""
    took: dict[str, list[float]] = {name: [] for name in _RULES}
    async with AsyncExitStack() as opened:
        wirings: dict[str, Wiring] = {}
        for number, (name, text) in enumerate(_RULES.items()):
            policy = home / f"{number}.yaml"
            policy.write_text(text)
            given: dict[str, Any] = {
                "home": home,
                "redis_url": url,
                "policy": policy,
                "tenant": f"tenant{number}",
                **dict.fromkeys(COUNTS, MOST),
            }
            settings = Settings(**given)
            wirings[name] = await opened.enter_async_context(assemble(settings))
        while len(took["without memory"]) < count:
            for name, wiring in wirings.items():
                took[name] += [await _suspend(wiring, place) for place in range(_TURN)]
    return took


async def _suspend(wiring: Wiring, place: int) -> float:
    run_id = new_id("run")
    run = RunRef(id=run_id, agent="bench", owner="bench", thread_id=run_id)
    call = ToolCall(call_id="", index=0, name="refund", args={"order": f"A-{place % 10}", "amount": 12.5})
    began_ms = monotonic_ms()
    await wiring.desk.suspend(run, [ExternalCall(call, _TOOL)], ResumeSpec(mode="poll"))
    return monotonic_ms() - began_ms


def main(scale: float) -> int:
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory(prefix="sayso-memory-") as folder,
        running_server(Path(folder) / "store") as url,
        Redis.from_url(url) as redis,
    ):
        redis.config_set("appendfsync", "everysec")
        took = uvloop.run(measure(url, Path(folder), max(_TURN, round(CALLS * scale))))
    plain = median(took["without memory"])
    for name, found in took.items():
        print(f"{name:<24} median {median(found):.3f} ms, {median(found) - plain:+.3f} ms ({len(found):,} calls)")
    return 0
