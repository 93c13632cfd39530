"""Tests of denials of a gated function by who calls it: a framework that would repeat the call, or code in between."""

import sys
from types import ModuleType
from typing import Any

import pytest

from sayso import Denied
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated

SOURCE = "def call(function, *args):\n    return function(*args)"


def call_from(module: str, function: Any, *args: Any) -> Any:
    """Call a function from code of this module."""
    names: dict[str, Any] = {"__name__": module}
    exec(SOURCE, names)  # noqa: S102 - its frame has the name of the module
    return names["call"](function, *args)


@pytest.fixture
def refund(desk: InProcessDesk, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A denied function, in a process with CrewAI."""
    monkeypatch.setitem(sys.modules, "crewai", ModuleType("crewai"))
    desk.reviewer.denies("refund", "Never.")
    return gated(desk, bank)


def test_denied_function_returns_to_a_framework_that_repeats(refund: Any, bank: Bank) -> None:
    text = call_from("crewai.tools", refund, "A-1", 5.0)
    assert (text, bank.paid) == ("refund was denied by reviewer: Never. It did not run. Continue without it.", [])


def test_denied_function_raises_in_a_tool_that_calls_it(refund: Any) -> None:
    def pay(order: str) -> Any:
        return refund(order, 5.0)

    with pytest.raises(Denied):
        call_from("crewai.tools", pay, "A-1")
