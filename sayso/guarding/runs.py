"""The gated run that a context serves, and the tools that a framework may start in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sayso.errors import SaysoError

_REFUSED = (
    "{tool} was called inside {place} without review, so it did not run. {owner}, which no gate has seen. Give its "
    "tools to {gated}, list it as a handoff, or put @gate on the function."
)

Wrapped = TypeVar("Wrapped")


class UnseenTool(SaysoError):
    """A framework was about to run a tool that no gate has seen."""


@dataclass
class GatedRun:
    """The gated run, or the call in it, that this context serves."""

    agent: str
    tool: str = ""
    admits: Callable[[str], bool] | None = None
    refusals: list[str] = field(default_factory=list)
    asked_model: bool = False

    def check(self) -> None:
        """Raise `UnseenTool` if a tool was refused inside the call, even if its agent continued without it."""
        if self.refusals:
            raise UnseenTool(self.refusals[0])


@dataclass
class _Pass:
    """Lets the framework start one tool."""

    used: bool = False


RUN: ContextVar[GatedRun | None] = ContextVar("sayso_gated_run", default=None)
_PASS: ContextVar[_Pass | None] = ContextVar("sayso_pass", default=None)
_SEEN: WeakValueDictionary[int, Any] = WeakValueDictionary()


@contextmanager
def use_gated_run(agent: str, admits: Callable[[str], bool] | None = None) -> Iterator[None]:
    """Guard everything that a framework starts within the block. `admits` uses up an approval of a tool, by name."""
    token, admitted = RUN.set(GatedRun(agent, admits=admits)), _PASS.set(None)
    try:
        yield
    finally:
        RUN.reset(token)
        _PASS.reset(admitted)


@contextmanager
def use_gated_call(tool: str) -> Iterator[GatedRun]:
    """Guard what a gated tool starts. Yields the call, which collects what was refused."""
    outer = RUN.get()
    running = GatedRun(outer.agent if outer is not None else "", tool)
    token, admitted = RUN.set(running), _PASS.set(None)
    try:
        yield running
    except Exception as error:
        if running.refusals:
            raise UnseenTool(running.refusals[0]) from error
        raise
    finally:
        RUN.reset(token)
        _PASS.reset(admitted)


@contextmanager
def admit() -> Iterator[None]:
    """Let the framework start one tool within the block, the judged one. It must be the first that it starts."""
    token = _PASS.set(_Pass())
    try:
        yield
    finally:
        _PASS.reset(token)


def admit_unseen(tool: str) -> bool:
    """Return whether an approval is left for this tool, which its framework runs out of sight, and use it up."""
    run = RUN.get()
    return run is not None and run.admits is not None and run.admits(tool)


def note_model() -> None:
    """Note that a model was asked in this context."""
    run = RUN.get()
    if run is not None:
        run.asked_model = True


def was_model_asked() -> bool:
    """Return whether the tool of this gated call has asked a model."""
    run = RUN.get()
    return run is not None and run.tool != "" and run.asked_model


def note_gated(function: Wrapped) -> Wrapped:
    """Note that calls of this function or tool pass a gate of their own."""
    _SEEN[id(function)] = function
    return function


def was_gated(function: Any) -> bool:
    """Return whether calls of this function, method or tool pass a gate of their own."""
    function = getattr(function, "__func__", function)
    return function is not None and _SEEN.get(id(function)) is function


def find_refusal(tool: str, agent: str | None, seen: bool = False) -> str | None:
    """Return why the framework must not start this tool, or None: no gated run is active, or a gate has judged it."""
    run, admitted = RUN.get(), _PASS.get()
    if run is None or seen:
        return None
    if admitted is not None and not admitted.used:
        admitted.used = True
        return None
    owner = f"It belongs to the agent {agent!r}" if agent else "It belongs to an agent"
    gated = f"the gated agent {run.agent!r}" if run.agent else "the gated agent"
    refusal = _REFUSED.format(tool=tool, place=run.tool or f"the run of {gated}", owner=owner, gated=gated)
    run.refusals.append(refusal)
    return refusal


def refuse_unseen(tool: str, agent: str | None, seen: bool = False) -> None:
    """Raise `UnseenTool` if the framework must not start this tool."""
    refusal = find_refusal(tool, agent, seen)
    if refusal is not None:
        raise UnseenTool(refusal)
