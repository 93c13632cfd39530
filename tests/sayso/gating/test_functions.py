"""A gated function is a function: of the same kind, name and signature, also as a method."""

import inspect
import multiprocessing
import pickle
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from types import FunctionType
from typing import Any, get_type_hints

import pytest

from sayso import Denied, Suspended, gate
from sayso.errors import InvalidInput
from sayso.guarding.runs import was_gated
from sayso.runner.tools import CallContext
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated

DESK = InProcessDesk()


@gate(client=DESK.client())
def refund(order: str, amount: float = 5.0, *, call: CallContext) -> str:
    """Pay a customer back."""
    return f"paid {amount:g} for {order}, as {call.call_id}"


@gate(client=DESK.async_client())
async def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


OPEN = InProcessDesk("version: 1\ndefault: allow\nrules: []\n")


@gate(client=OPEN.client())
def count(things: int) -> str:
    """Say how many things there are, and how many calls were gated in this process."""
    return f"{things} behind {len(OPEN.records)} gate"


def test_gated_function_is_a_function_of_the_same_kind() -> None:
    assert all(isinstance(one, FunctionType) for one in (refund, send_mail))
    assert not inspect.iscoroutinefunction(refund)
    assert inspect.iscoroutinefunction(send_mail)
    assert (refund.__name__, refund.__doc__, refund.__module__) == ("refund", "Pay a customer back.", __name__)
    assert was_gated(refund)


def test_gated_function_has_the_signature_without_the_context() -> None:
    assert str(inspect.signature(refund)) == "(order: str, amount: float = 5.0) -> str"
    assert get_type_hints(refund) == {"order": str, "amount": float, "return": str}


def test_gated_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(refund)) is refund  # noqa: S301 - our own bytes


def test_gated_function_runs_behind_its_gate_in_a_process_pool() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(count, 3).result() == "3 behind 1 gate"


def test_gated_function_has_its_gate_as_call() -> None:
    DESK.reviewer.approves("refund")
    assert refund.call.tool.name == "refund"
    again: Any = refund.call
    assert again("A-1") == "paid 5 for A-1, as i1"


async def test_gated_coroutine_function_returns_a_coroutine() -> None:
    DESK.reviewer.approves("send_mail")
    coroutine = send_mail("ann")
    assert inspect.iscoroutine(coroutine)
    assert await coroutine == "sent to ann"


class Shop:
    """Methods of every kind behind a gate."""

    def __init__(self, name: str) -> None:
        self.name = name

    @gate(client=DESK.client(), key="refund-{order}", name="shop.refund")
    def refund(self, order: str) -> str:
        """Pay a customer back."""
        return f"{self.name} paid {order}"

    @gate(client=DESK.async_client())
    async def mail(self, to: str, call: CallContext) -> str:
        return f"{self.name} sent to {to} as {call.call_id}"

    @gate(client=DESK.client())
    def rename(self: "Shop", name: str) -> "Shop":
        return Shop(name)

    @staticmethod
    @gate(client=DESK.client())
    def below_static(order: str) -> str:
        return f"static {order}"

    @gate(client=DESK.client())
    @staticmethod
    def above_static(order: str) -> str:
        return f"static {order}"

    @classmethod
    @gate(client=DESK.client())
    def below_class(cls, order: str) -> str:
        return f"{cls.__name__} {order}"

    @gate(client=DESK.client())
    @classmethod
    def above_class(cls, order: str) -> str:
        return f"{cls.__name__} {order}"


class Branch(Shop):
    """Inherits the methods."""


@pytest.mark.parametrize("kind", [Shop, Branch])
@pytest.mark.parametrize("name", ["below_static", "above_static", "below_class", "above_class"])
def test_gate_runs_a_static_or_class_method_in_either_order(kind: type[Shop], name: str) -> None:
    DESK.reviewer.approves(name)
    first = "static" if "static" in name else kind.__name__
    assert getattr(kind, name)("A-1") == f"{first} A-1"
    assert getattr(kind("Corner"), name)(order="A-2") == f"{first} A-2"


async def test_gate_runs_a_method_with_its_object() -> None:
    desk_calls = len(DESK.records)
    DESK.reviewer.approves("mail")
    shop: Any = Shop("Corner")
    assert await shop.mail("ann") == "Corner sent to ann as i1"
    (record,) = [*DESK.records.values()][desk_calls:]
    assert record.items[0].tool.args == {"to": "ann"}
    assert str(inspect.signature(shop.mail)) == "(to: str) -> str"


def test_gate_denies_a_method() -> None:
    DESK.reviewer.denies("shop.refund", "Never")
    with pytest.raises(Denied, match="Never"):
        Shop("Corner").refund("A-9")


def test_gate_runs_a_method_that_names_its_own_class() -> None:
    DESK.reviewer.approves("rename")
    assert Shop("Corner").rename("Corner 2").name == "Corner 2"


def test_with_key_of_a_method_takes_its_object(desk: InProcessDesk) -> None:
    class Till:
        paid = 0

        @gate(client=desk.client(), wait_s=0)
        def pay(self, order: str) -> str:
            self.paid += 1
            return f"paid {order}"

    till = Till()
    with pytest.raises(Suspended) as waiting:
        till.pay("A-1")
    desk.reviewer.decide("approve")
    assert Till.pay.with_key(waiting.value.key)(till, "A-1") == "paid A-1"
    assert till.paid == 1


def test_gate_runs_a_bound_method(desk: InProcessDesk) -> None:
    class Till:
        def pay(self, order: str) -> str:
            return f"paid {order}"

    desk.reviewer.approves("pay")
    assert gate(client=desk.client())(Till().pay)("A-1") == "paid A-1"


def test_gate_refuses_generators_when_decorated() -> None:
    def read_lines() -> Iterator[str]:
        yield "a"

    async def read_later() -> AsyncIterator[str]:
        yield "a"

    for function in (read_lines, read_later):
        with pytest.raises(InvalidInput, match=r"is a generator, .* Return a list instead"):
            gate(function)


@pytest.mark.parametrize("wrong", [Shop, Shop("Corner"), 5])
def test_gate_refuses_what_is_no_function(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"not a function\. Put @gate directly above the def"):
        gate(client=DESK.client())(wrong)


def test_gate_refuses_a_gated_function() -> None:
    with pytest.raises(InvalidInput, match="is gated already"):
        gate(refund)


async def test_plain_def_as_async_runs_in_a_thread_once_it_is_approved(desk: InProcessDesk) -> None:
    threads: list[int] = []

    @gate(client=desk.client(), key="refund-{order}")
    def refund(order: str, call: CallContext) -> str:
        """Pay a customer back."""
        threads.append(threading.get_ident())
        return f"paid {order} as {call.call_id}"

    assert inspect.iscoroutinefunction(refund.as_async)
    assert str(inspect.signature(refund.as_async)) == "(order: str) -> str"
    assert was_gated(refund.as_async)
    desk.reviewer.approves("refund")
    later: Any = refund.as_async
    assert await later("A-1") == "paid A-1 as i1"
    assert await later("A-1") == "paid A-1 as i1"
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
    desk.reviewer.denies("refund", "Never")
    with pytest.raises(Denied, match="Never"):
        await later("A-2")
    assert len(threads) == 1


async def test_async_def_as_async_is_itself() -> None:
    assert send_mail.as_async is send_mail


async def test_gate_in_a_running_loop_waits_and_warns(
    desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.reviewer.approves("refund")
    assert gated(desk, bank)("A-1", 5.0) == "paid 5 for A-1"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "The event loop of this thread stands still until then: use refund.as_async, or make it an async def"
    )
