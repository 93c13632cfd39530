"""Suspend many runs quickly, without HTTP: through Sayso's desk, or in floor A's store."""

import asyncio

from pydantic import JsonValue
from redis.asyncio import Redis

from benchmarks.agents import refund
from benchmarks.peers import SuspendedCall, arguments
from benchmarks.peers.floor_a import SUSPEND, Call
from benchmarks.peers.sayso import point_to
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.external import ExternalCall, evaluate_calls
from sayso.core.records.suspensions import ResumeSpec, RunRef, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.deciding import suspend
from service.assembly import assemble
from service.core.desk.changes import draft_suspension
from service.core.settings import CHECKOUT, Settings
from service.core.settings.limits import COUNTS, MOST
from service.core.wiring import Wiring

_AT_ONCE = 16
_SIZE = 300
SETTINGS = Settings(policy=CHECKOUT / "benchmarks" / "policy.yaml").model_copy(update=dict.fromkeys(COUNTS, MOST))


async def fill(
    url: str, prefix: str, count: int, *, deadline_at_ms: int | None = None, within_ms: int = 0, size: int = _SIZE
) -> list[SuspendedCall]:
    """Suspend `count` runs with one call each. With a deadline, spread the deadlines over `within_ms` after it."""
    suspended: list[SuspendedCall] = []
    numbers = iter(range(count))
    async with assemble(SETTINGS.model_copy(update={"redis_url": url})) as wiring:

        async def work() -> None:
            for number in numbers:
                until_ms = deadline_at_ms and deadline_at_ms + within_ms * number // count
                suspended.append(await _suspend(wiring, f"{prefix}{number}", until_ms, size))

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return suspended


async def fill_floor(url: str, prefix: str, count: int) -> list[SuspendedCall]:
    """Suspend `count` calls in floor A's store."""
    names = [f"{prefix}{number}" for number in range(count)]
    async with Redis.from_url(url) as redis, redis.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.eval(
                SUSPEND, 2, f"p:{name}", "deadlines", Call(id=name, args=arguments(name, _SIZE)).model_dump_json(), 1
            )
        await pipe.execute()
    return [SuspendedCall(name, f"/decide/{name}") for name in names]


async def suspend_polled(wiring: Wiring, name: str, **args: JsonValue) -> SuspensionRecord:
    """Suspend a run that its client polls, so that no worker executes it. `args` replace arguments of its call."""
    call, resume = _call(name, _SIZE, args), ResumeSpec(mode="poll", resumer="calls")
    return (await wiring.desk.suspend(_run(name), [call], resume)).record


async def _suspend(wiring: Wiring, name: str, deadline_at_ms: int | None, size: int) -> SuspendedCall:
    run, call = _run(name), _call(name, size, {})
    if deadline_at_ms is None:
        record = (await wiring.desk.suspend(run, [call], ResumeSpec(resumer="calls"))).record
    else:
        record = await _suspend_until(wiring, run, call, deadline_at_ms)
    return point_to(name, record.id, record.items[0].digest)


def _run(name: str) -> RunRef:
    return RunRef(id=f"run_{name}", agent="bench", owner="bench", thread_id=name)


def _call(name: str, size: int, args: JsonObject) -> ExternalCall:
    given = {**arguments(name, size), **args}
    return ExternalCall(ToolCall(call_id="", index=0, name="refund", args=given), refund.definition)


async def _suspend_until(wiring: Wiring, run: RunRef, call: ExternalCall, deadline_at_ms: int) -> SuspensionRecord:
    """Suspend a run in the past, so that its rule's timeout ends at `deadline_at_ms`."""
    draft = draft_suspension("default", run, state=None).model_copy(update={"resume": ResumeSpec(resumer="calls")})
    drafts, _ = evaluate_calls(wiring.rulebook.policy, run, [call])
    asked_at_ms = deadline_at_ms - drafts[0].terms.timeout_s * 1000
    saved = await wiring.desk.suspensions.create(draft.id, lambda _: suspend(draft, drafts, asked_at_ms))
    return saved.record
