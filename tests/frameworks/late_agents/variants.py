"""What each framework's module shares: effects, threads, and a gated function for inner agents."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sayso import gate
from sayso.runner.protocol import FrameworkAgent
from sayso.testing import InProcessDesk
from tests.frameworks.edge_cases.local_runs import play, refusal

RAN: list[str] = []
DESK = InProcessDesk()
Work = Callable[[], Coroutine[Any, Any, Any]]


def pay(to: str) -> str:
    """Record a payment."""
    RAN.append(to)
    return f"sent to {to}"


@gate(client=DESK.async_client(), name="send_money", quiet=True)
async def send_gated(to: str) -> str:
    """Send money to somebody, if a person approves."""
    return pay(to)


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


def run_in_pool(work: Work) -> str:
    """Run the work in a pool of threads."""
    with ThreadPoolExecutor(1) as pool:
        return str(pool.submit(lambda: asyncio.run(work())).result())


async def play_all(make: Callable[[Any], FrameworkAgent], tools: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ran and how the run ended, of a gated agent with each tool. All calls of the agent are approved."""
    results: dict[str, Any] = {}
    for name, tool in tools.items():
        RAN.clear()
        DESK.reviewer.approves("send_money")
        results[name] = {**await play(make(tool)), "ran": list(RAN)}
    return results


async def play_beside(bot: FrameworkAgent, started: asyncio.Event, work: Callable[[], Awaitable[Any]]) -> list[str]:
    """Return what an ungated agent ran while the call of a gated one was under way."""
    RAN.clear()

    async def wait_and_work() -> None:
        await started.wait()
        await work()

    other = asyncio.create_task(wait_and_work())
    await play(bot)
    await other
    return list(RAN)


def list_guarded(*owners: Any) -> list[str]:
    """Return the names of the guarded functions of classes and modules."""
    return [
        f"{owner.__name__}.{name}"
        for owner in owners
        for name, one in vars(owner).items()
        if hasattr(getattr(one, "__func__", one), "__sayso_guard__")
    ]


def refuse_without(owner: Any, name: str, make_bot: Callable[[], FrameworkAgent]) -> str | None:
    """Return why an agent is not built with a version of the framework that lacks this function."""
    delattr(owner, name)
    return refusal(make_bot)
