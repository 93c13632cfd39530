"""Tests of the search from a tool's function."""

import sys
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sayso.adapters.reachability import reach


class Payer:
    """Stand-in for an agent."""

    def run(self) -> str:
        return "paid"


class Desk:
    """Holds two agents. Its methods name only one."""

    def __init__(self) -> None:
        self.payer = PAYER
        self.other = OTHER

    def pay(self) -> str:
        return self.payer.run()

    @property
    def chosen(self) -> Payer:
        return self.payer

    def __call__(self) -> str:
        return self.payer.run()


PAYER, OTHER = Payer(), Payer()
DESK = Desk()
BY_NAME = {"payer": [PAYER]}
MODULE = ModuleType("bots")
MODULE.payer = PAYER  # type: ignore[attr-defined]


def call_global() -> str:
    return PAYER.run()


def call_helper() -> str:
    return call_global()


def call_element(name: str) -> str:
    return BY_NAME[name][0].run()


def call_attribute() -> str:
    return DESK.pay()


def call_property() -> str:
    return DESK.chosen.run()


def call_module() -> str:
    return str(MODULE.payer.run())


def call_made() -> str:
    return Desk().pay()


def call_inside() -> str:
    def inner() -> str:
        return PAYER.run()

    return inner()


def call_default(payer: Payer = PAYER) -> str:
    return payer.run()


def make_closure() -> Any:
    held = PAYER

    @wraps(call_nothing)
    def call() -> str:
        return held.run()

    return call


def call_nothing(*_unused: object) -> str:
    return "payer"


@pytest.mark.parametrize(
    "function",
    [
        call_global,
        call_helper,
        call_element,
        call_attribute,
        call_property,
        call_module,
        call_made,
        call_inside,
        call_default,
        make_closure(),
        DESK.pay,
        DESK,
        partial(call_nothing, PAYER),
    ],
)
def test_reach_finds_what_a_function_calls(function: Any) -> None:
    assert PAYER in [one for one in reach(function) if isinstance(one, Payer)]


def test_reach_ignores_names_that_the_code_does_not_use() -> None:
    assert [one for one in reach(call_nothing) if isinstance(one, Payer)] == []
    assert [one for one in reach(partial(call_nothing, SimpleNamespace(of=PAYER))) if isinstance(one, Payer)] == []
    assert OTHER not in [one for one in reach(DESK.pay) if isinstance(one, Payer)]


class Unbound:
    """A proxy without a target."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("outside of a request")


def test_reach_follows_a_user_module_named_like_a_framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "desk.py").write_text("PAYER = None\n\n\ndef ask():\n    return PAYER.run()\n")
    monkeypatch.syspath_prepend(tmp_path)
    desk = import_module("agents.desk")
    monkeypatch.setattr(desk, "PAYER", PAYER)
    for name in ("agents", "agents.desk"):
        monkeypatch.setitem(sys.modules, name, sys.modules.pop(name))
    assert any(one is PAYER for one in reach(desk.ask))


def test_reach_passes_an_unbound_proxy() -> None:
    found = reach(partial(call_nothing, Unbound(), PAYER))
    assert any(one is PAYER for one in found)


def test_reach_ends_on_cyclic_references() -> None:
    first: list[Any] = []
    second = {"first": first, "function": make_closure()}
    first.append(second)
    assert PAYER in [one for one in reach(partial(call_nothing, first)) if isinstance(one, Payer)]
