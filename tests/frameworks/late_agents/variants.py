"""Ways in which a tool gets an agent when it runs, the same for each framework, and how they end."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.pool import ThreadPool
from typing import Any

import sayso
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.runner.agents import Agent
from sayso.runner.local import HeadlessProvider, run_agent
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall
from sayso.runner.protocol import FrameworkAgent
from sayso.runner.tools import tool
from sayso.testing import InProcessDesk
from tests.frameworks.edge_cases.local_runs import play, refusal

RAN: list[str] = []
DESK = InProcessDesk()
POOL = ThreadPool(1)
"""A pool that is older than all runs."""

Work = Callable[[], Coroutine[Any, Any, Any]]


def pay(to: str) -> str:
    """Record a payment."""
    RAN.append(to)
    return f"sent to {to}"


@sayso.gate(client=DESK.async_client(), name="send_money", quiet=True)
async def send_gated(to: str) -> str:
    """Send money to somebody, if a person approves."""
    return pay(to)


@dataclass(frozen=True)
class Payers:
    """A framework's agents that pay.

    `make` returns one with these tools, or with `send_money`. `run` lets it pay. `gate` returns a gated agent with one
    tool. `gated` is a tool with a gate of its own.
    """

    framework: str
    make: Callable[..., Any]
    run: Callable[[Any, str], Coroutine[Any, Any, str]]
    gate: Callable[[Any], FrameworkAgent]
    send_money: Any
    gated: Any

    def list_late(self) -> list[Any]:
        """Return tools that get an agent when they run."""
        get_payer = cache(self.make)

        async def built(to: str) -> str:
            """Pay through an agent made on the spot."""
            return await self.run(self.make(), to)

        async def cached(to: str) -> str:
            """Pay through an agent of a factory."""
            return await self.run(get_payer(), to)

        async def imported(to: str) -> str:
            """Pay through an agent of another module."""
            from tests.frameworks.late_agents import payers

            return await self.run(getattr(payers, self.framework), to)

        def in_sync(to: str) -> str:
            """Pay through an agent, without awaiting it, in a thread of its own."""
            return run_in_thread(lambda: built(to))

        def in_pool(to: str) -> str:
            """Pay through an agent in a pool of threads."""
            with ThreadPoolExecutor(1) as pool:
                return str(pool.submit(lambda: asyncio.run(built(to))).result())

        def in_thread_pool(to: str) -> str:
            """Pay through an agent in another kind of pool, which is older than the run."""
            return str(POOL.apply(lambda: asyncio.run(built(to))))

        async def swallowed(to: str) -> str:
            """Pay through an agent, and hide that it failed."""
            with suppress(Exception):
                await built(to)
            return "all is well"

        return [built, cached, imported, in_sync, in_pool, in_thread_pool, swallowed]

    def list_allowed(self) -> list[Any]:
        """Return tools that get an agent whose calls pass a gate."""

        async def gated_function(to: str) -> str:
            """Pay through an agent whose tool has a gate of its own."""
            return await self.run(self.make(self.gated), to)

        async def gated_agent(to: str) -> str:
            """Pay through an agent that is gated, too."""
            return str((await play(self.gate(self.send_money)))["result"])

        return [gated_function, gated_agent]


def run_in_thread(work: Work) -> str:
    """Run the work in a thread of its own, which knows nothing of its starter's context."""
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(asyncio.run(work()))
        except Exception as error:  # noqa: BLE001 - raised by `result`
            done.set_exception(error)

    threading.Thread(target=run).start()
    return str(done.result())


async def play_variants(
    payers: Payers, more: Iterable[Any], guarded: Sequence[Any], place: tuple[Any, str]
) -> dict[str, Any]:
    """Return how runs with each tool end, in the framework and in Sayso's own runner.

    `guarded` has the classes and modules with guarded functions. The function at `place` is removed at the end.
    """
    tools = [*payers.list_late(), *payers.list_allowed(), *more]
    results = {
        "played": await play_all(payers.gate, tools),
        "own": await play_own([one for one in tools if [*inspect.signature(one).parameters] == ["to"]]),
        "beside": await _play_beside(payers),
        "guarded": _list_guarded(*guarded),
    }
    delattr(*place)
    return {**results, "changed": refusal(lambda: payers.gate(payers.send_money))}


async def play_all(make: Callable[[Any], FrameworkAgent], tools: Iterable[Any]) -> dict[str, Any]:
    """Return what ran and how the run ended, of a gated agent with each tool. All calls of the agent are approved."""
    return await _play_each(tools, lambda function: play(make(function)))


async def play_own(tools: Iterable[Any]) -> dict[str, Any]:
    """Return the same for an agent of Sayso's own runner."""

    async def play_one(function: Any) -> dict[str, Any]:
        agent = Agent(name="bot", instructions="Play.", tools=(tool(function),), model=_Asker())
        ended = await run_agent(agent, "Play.", policy=Policy(default=Action.ALLOW), provider=HeadlessProvider())
        return {"result": ended.result, "error": ended.error}

    return await _play_each(tools, play_one)


class _Asker:
    """Requests one call of the only tool, then repeats its result."""

    async def complete(self, messages: list[ChatMessage], tools: Sequence[Any]) -> ModelTurn:
        results = [str(one["content"]) for one in messages if one["role"] == "tool"]
        if results:
            return ModelTurn(text=results[0], finish_reason="stop")
        call = RequestedCall(call_id="c0", name=tools[0].name, args_json='{"to": "ann"}')
        return ModelTurn(calls=(call,), finish_reason="tool_calls")


async def _play_each(tools: Iterable[Any], play_one: Callable[[Any], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for function in tools:
        RAN.clear()
        DESK.reviewer.approves("send_money")
        results[function.__name__] = {**await play_one(function), "ran": list(RAN)}
    return results


async def _play_beside(payers: Payers) -> list[str]:
    """Return what an ungated agent ran while the call of a gated one was under way."""
    RAN.clear()
    started = asyncio.Event()

    async def wait(to: str) -> str:
        """Wait for an agent beside this one."""
        started.set()
        await asyncio.sleep(0)
        return to

    async def wait_and_work() -> None:
        await started.wait()
        await payers.run(payers.make(), "ann")

    other = asyncio.create_task(wait_and_work())
    await play(payers.gate(wait))
    await other
    return list(RAN)


def _list_guarded(*owners: Any) -> list[str]:
    return [
        f"{owner.__name__}.{name}"
        for owner in owners
        for name, one in vars(owner).items()
        if hasattr(getattr(one, "__func__", one), "__sayso_guard__")
    ]
