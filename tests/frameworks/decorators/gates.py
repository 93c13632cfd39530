"""Gated functions and methods, and the outcome of a framework's call of each."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from sayso import gate
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk

Run = Callable[[Any], Awaitable[Any]]
"""Makes a tool of a function, lets a model call it once with `to="ann"`, and returns what the model got."""

PATIENCE_S = 30


class BeatingDesk(InProcessDesk):
    """A desk that answers a waiting thread only after the event loop has run on; `loop_runs` says whether it can."""

    def __init__(self) -> None:
        super().__init__()
        self.loop_runs: bool | None = None
        self._beats = threading.Condition()
        self._count = 0
        self._loop_thread = 0

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Let a task of this event loop beat within the block."""
        self._loop_thread = threading.get_ident()
        task = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _beat(self) -> None:
        while True:
            with self._beats:
                self._count += 1
                self._beats.notify_all()
            await asyncio.sleep(0)

    def respond(self, request: httpx.Request) -> httpx.Response:
        if self.loop_runs is None and threading.get_ident() == self._loop_thread:
            self.loop_runs = False
        if self.loop_runs is None and request.method == "GET":
            with self._beats:
                goal = self._count + 3
                self.loop_runs = self._beats.wait_for(lambda: self._count >= goal, PATIENCE_S)
        return super().respond(request)


class Till:
    """Sends money, behind gates of a desk of its own."""

    def __init__(self, on_denied: str = "raise") -> None:
        self.desk = BeatingDesk()
        self.on_denied: Any = on_denied
        self.ran: list[str] = []

    def send(self, to: str) -> str:
        """Send money, and note it."""
        self.ran.append(to)
        return f"sent to {to}"

    def gate(self, function: Any) -> Any:
        """Return the function behind a gate of this desk."""
        if inspect.iscoroutinefunction(function):
            self.desk.loop_runs = True  # it never blocks, and its requests are answered within the loop
            client: Any = self.desk.async_client()
        else:
            client = self.desk.client()
        return gate(client=client, name="send_money", quiet=True, on_denied=self.on_denied)(function)


def build_functions(till: Till) -> dict[str, Callable[[], Any]]:
    """Return how to build each gated function and bound method that sends money."""

    def send_money(to: str) -> str:
        """Send money to somebody."""
        return till.send(to)

    async def send_later(to: str) -> str:
        """Send money to somebody."""
        return till.send(to)

    class Bank:
        """Methods that send money."""

        def send_money(self, to: str) -> str:
            """Send money to somebody."""
            return till.send(to)

        async def later(self, to: str) -> str:
            """Send money to somebody."""
            return till.send(to)

    def bind(method: Any) -> Any:
        return till.gate(method).__get__(Bank())

    return {
        "def": lambda: till.gate(send_money),
        "async def": lambda: till.gate(send_later),
        "as async": lambda: till.gate(send_money).as_async,
        "method": lambda: bind(Bank.send_money),
        "async method": lambda: bind(Bank.later),
    }


async def play_gates(
    run: Run,
    more: Callable[[Till], Mapping[str, Callable[[], Any]]] = lambda _till: {},
    decorate: Callable[[Any], Any] | None = None,
) -> dict[str, Any]:
    """Return what ran, how often a person was asked, and what the model got, of each function and each decision.

    With `decorate`, the framework's own decorator, the refusals of a gate above it are under `above`.
    """
    results: dict[str, Any] = {}
    for kind in (*build_functions(Till()), *more(Till())):
        results[kind] = {}
        for verdict, on_denied in (("approves", "raise"), ("denies", "raise"), ("returns", "return")):
            till = Till(on_denied)
            if verdict == "approves":
                till.desk.reviewer.approves("send_money")
            else:
                till.desk.reviewer.denies("send_money", "too much")
            function = {**build_functions(till), **more(till)}[kind]()
            async with till.desk.watch():
                try:
                    text = str(await run(function))
                except Exception as error:  # noqa: BLE001 - a framework may pass the error on
                    text = f"{type(error).__name__}: {error}"
            results[kind][verdict] = {"ran": till.ran, "asked": len(till.desk.records), "text": text}
            results[kind].setdefault("loop runs", till.desk.loop_runs)
    return {**results, "above": find_refusals(decorate)} if decorate is not None else results


def find_refusals(decorate: Callable[[Any], Any]) -> list[str | None]:
    """Return why a gate above the framework's decorator is refused, for a `def` and an `async def`."""

    def send_money(to: str) -> str:
        """Send money to somebody."""
        return to

    async def send_later(to: str) -> str:
        """Send money to somebody."""
        return to

    refusals: list[str | None] = []
    for function in (send_money, send_later):
        try:
            gate(decorate(function))
            refusals.append(None)
        except InvalidInput as error:
            refusals.append(error.message)
    return refusals
