"""Measure a replay of 100,000 recorded calls: `make bench ARGS=--replay`.

Runs with five calls each are suspended through the desk, and people decide those that are asked about. Then candidate
rules with one mistake judge all of them again, beside a task that measures how long the event loop is held.
"""

import asyncio
import resource
import tempfile
import time
from pathlib import Path

import uvloop

from benchmarks.holds.probes import LoopProbe
from launch.server import running_server
from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest, Shown
from sayso.core.records.suspensions import ResumeSpec, RunRef
from sayso.core.records.tools import ToolCall, ToolDefinition
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import COUNTS, MOST
from service.core.wiring import Wiring
from service.features.whatif.replays import PROCESSES, ReplayRequest, RuleReplays
from service.features.whatif.store import Replay

CALLS = 100_000
CALLS_EACH = 5
_AT_ONCE = 16
_RULES = """\
version: 1
default: request_approval
rules:
  - {{id: huge, priority: 900, tool: "refund_*", when: args.amount > 2000, action: deny}}
  - {{id: large, priority: 800, tool: "refund_*", when: "args.amount > {limit}", action: request_approval}}
  - {{id: small, priority: 700, tool: "refund_*", action: allow}}
  - {{id: reads, tool: [read_*, list_*, search_*], action: allow}}
  - {{id: outside, tool: send_mail, when: '!args.to.endsWith("@example.com")', action: request_approval}}
  - {{id: inside, priority: 90, tool: send_mail, action: allow}}
  - {{id: deploys, tool: deploy, context: {{equals: {{env: prod}}}}, action: deny}}
  - {{id: shell, tool: run_shell, when: 'args.command.matches("\\\\brm\\\\b")', action: deny}}
  - {{id: writes, tool: [update_*, delete_*], action: request_approval}}
  - {{id: long-runs, when: step > 50, action: request_approval}}
"""
_TOOL = ToolDefinition(name="any", parameters={"type": "object"})
_BEN = Actor(id="ben", kind=ActorKind.HUMAN, channel="web")
_NOTE = "The customer says that the parcel came open and two of the six cups were broken; a photo is in the ticket."


async def measure(url: str, home: Path, count: int) -> None:
    """Fill the store, replay and print."""
    policy = home / "policy.yaml"
    policy.write_text(_RULES.format(limit=100), encoding="utf-8")
    limits = dict.fromkeys(COUNTS, MOST)
    settings = Settings(redis_url=url, policy=policy, home=home).model_copy(update=limits)
    async with assemble(settings) as wiring:
        began_s = time.perf_counter()
        await _fill(wiring, count)
        print(f"{count:,} calls recorded in {time.perf_counter() - began_s:.0f} s")
        replays, probe = RuleReplays(wiring), LoopProbe()
        probing, began_s, own_s = asyncio.create_task(probe.run()), time.perf_counter(), time.process_time()
        asked = ReplayRequest(_RULES.format(limit=1000), "candidate.yaml", 0, 2**53)
        started = await replays.start(asked, "bench")
        found = await replays.wait(started.id, 3600)
        took_s, own_s = time.perf_counter() - began_s, time.process_time() - own_s
        probing.cancel()
        await replays.aclose()
    _print(found, took_s, own_s, probe.worst_ms)


async def _fill(wiring: Wiring, count: int) -> None:
    numbers = iter(range(0, count, CALLS_EACH))

    async def work() -> None:
        for first in numbers:
            await _record(wiring, first, min(CALLS_EACH, count - first))

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


async def _record(wiring: Wiring, first: int, count: int) -> None:
    """Suspend a run with some calls, and decide those that are asked about; every third is denied."""
    run = RunRef(id=f"run_{first}", agent=f"agent-{first % 8}", owner="bench", thread_id=f"{first}")
    calls = [_make_call(first + index, index) for index in range(count)]
    record = (await wiring.desk.suspend(run, calls, ResumeSpec(mode="poll", resumer="calls"))).record
    shown = Shown(display_hash="1:x", values=4, values_shown=4, look_ms=3_000 + first % 60_000)
    for item in record.items:
        if item.open:
            action = "deny" if int(item.call_id) % 3 == 0 else "approve"
            request = DecisionRequest.model_validate({"action": action, "digest": item.digest})
            await wiring.desk.decide(record.id, item.item_id, request, _BEN, shown=shown)


def _make_call(number: int, index: int) -> ExternalCall:
    tools = (
        ("refund_order", {"order": f"A-{number}", "amount": number % 2_500, "currency": "EUR", "note": _NOTE}),
        ("read_order", {"order": f"A-{number}"}),
        ("send_mail", {"to": f"c{number}@example.{'com' if number % 2 else 'org'}", "text": _NOTE}),
        ("search_articles", {"query": _NOTE, "limit": 20}),
        ("run_shell", {"command": f"ls -l /srv/{number}"}),
    )
    name, args = tools[number % len(tools)]
    call = ToolCall(call_id=str(number), index=index, name=name, args=args)
    return ExternalCall(call, _TOOL.model_copy(update={"name": name}))


def _print(found: Replay, took_s: float, own_s: float, worst_ms: float) -> None:
    count, judging = found.result.count, resource.getrusage(resource.RUSAGE_CHILDREN)
    megabytes = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, judging.ru_maxrss // 1024]
    spent_s = judging.ru_utime + judging.ru_stime
    print(f"{found.status}: {count:,} calls in {took_s:.1f} s, {count / took_s:,.0f} a second, {PROCESSES} processes")
    print(f"processor time: {own_s:.1f} s in the service, {spent_s:.1f} s in the processes that judge")
    print(f"longest hold of the event loop {worst_ms:.1f} ms; memory {megabytes[0]} MB, each process {megabytes[1]} MB")
    for cell in found.result.list_cells():
        print(f"{cell.count:>9,}  {cell.past} → {cell.now}")


def main(scale: float) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="sayso-replay-") as folder, running_server(Path(folder) / "store") as url:
        uvloop.run(measure(url, Path(folder), round(CALLS * scale)))
    return 0
