"""Gated functions and methods, and the outcome of a framework's call of each."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sayso import gate
from sayso.testing import InProcessDesk

Run = Callable[[Any], Awaitable[Any]]
"""Makes a tool of a function, lets a model call it once with `to="ann"`, and returns what the model got."""


class Till:
    """Sends money, behind gates of a desk of its own."""

    def __init__(self) -> None:
        self.desk = InProcessDesk()
        self.ran: list[str] = []

    def send(self, to: str) -> str:
        """Send money, and note it."""
        self.ran.append(to)
        return f"sent to {to}"

    def gate(self, function: Any) -> Any:
        """Return the function behind a gate of this desk."""
        client = self.desk.async_client() if inspect.iscoroutinefunction(function) else self.desk.client()
        return gate(client=client, name="send_money", quiet=True)(function)


def build_functions(till: Till) -> dict[str, Any]:
    """Return gated functions and bound methods that send money."""

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

        send_money = till.gate(send_money)
        later = till.gate(later)

    bank = Bank()
    return {
        "def": till.gate(send_money),
        "async def": till.gate(send_later),
        "method": bank.send_money,
        "async method": bank.later,
    }


async def play_gates(
    run: Run, more: Callable[[Till], Mapping[str, Any]] = lambda _till: {}
) -> dict[str, dict[str, Any]]:
    """Return what ran, how often a person was asked, and what the model got, of each function and each decision."""
    results: dict[str, dict[str, Any]] = {}
    for kind in (*build_functions(Till()), *more(Till())):
        results[kind] = {}
        for verdict in ("approves", "denies"):
            till = Till()
            getattr(till.desk.reviewer, verdict)("send_money")
            function = {**build_functions(till), **more(till)}[kind]
            try:
                text = str(await run(function))
            except Exception as error:  # noqa: BLE001 - a framework may pass the error on
                text = f"{type(error).__name__}: {error}"
            results[kind][verdict] = {"ran": till.ran, "asked": len(till.desk.records), "text": text}
    return results
