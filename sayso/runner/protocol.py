"""Say what an agent of another framework is to Sayso: something that stops before its tools and can go on elsewhere.

The framework asks its model and runs its own tools. An adapter sees to it that it stops at every turn that calls some,
hands out all it needs to go on as JSON, and that no tool starts but through the `Gate`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, Protocol

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.clock import monotonic_ms
from sayso.errors import IllegalTransition, InvalidInput, ModelError, SaysoError
from sayso.policy.rules import same_json
from sayso.records.base import Immutable
from sayso.records.suspensions import Origin, RunStatus
from sayso.records.tool_calls import ToolCall, ToolDefinition, ToolResult
from sayso.runner.agents import Agent, AgentManifest
from sayso.runner.batches import Batch, BatchCall, complete_batch
from sayso.runner.judging import MAX_NAME_CHARS
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall
from sayso.runner.schema_tools import SchemaTool
from sayso.runner.tools import CallContext, describe_error, plain_json

_EDITED = "A reviewer changed the arguments before this ran; it ran with {args}."
_NOT_STARTED = "The framework did not start this call."
_BROKEN_OFF = "The framework broke this call off in the middle; nobody knows what it did."


class ToolFailed(SaysoError):
    """The tool failed, and its framework has said how."""


@dataclass(frozen=True)
class Asked:
    """The framework stopped before the calls of one turn; `native` is all it needs to go on, as plain JSON.

    A call whose tool the framework runs where nobody sees it is `unseen`: it has run when the framework has gone on.
    `told` is what was said on the way, as the framework's own events; see `sayso.timeline`.
    """

    native: JsonObject
    calls: tuple[RequestedCall, ...]
    text: str = ""
    unseen: bool = False
    told: tuple[JsonObject, ...] = ()


@dataclass(frozen=True)
class Done:
    """The framework came to the end of its run: completed, or as it says, and then why."""

    result: JsonValue
    status: RunStatus = RunStatus.COMPLETED
    error: str | None = None
    told: tuple[JsonObject, ...] = ()


class Framework(Protocol):
    """One agent of another framework, behind an adapter. It keeps nothing between two calls."""

    @property
    def origin(self) -> Origin:
        """Which software this is, and how its state is written."""
        ...

    async def begin(self, text: str) -> Asked | Done:
        """Run up to the first turn that calls tools, none of which may start, or to the end."""
        ...

    async def find_hindrance(self, native: JsonObject) -> str | None:
        """Say why the framework cannot go on from there to run what has leave, or None; nothing has begun yet."""
        ...

    async def go_on(self, native: JsonObject, gate: "Gate") -> Asked | Done:
        """Go on from where it stopped: run through the gate what has leave, tell of the rest how it ended."""
        ...


class FrameworkState(Immutable):
    """Where a run of another framework stands; `sayso.framework/1`. `native` is missing until its first stop."""

    format: Literal["sayso.framework/1"] = "sayso.framework/1"
    agent: str
    framework: str
    state_schema: str
    text: str = ""
    native: JsonObject | None = None
    unseen: bool = False
    step: int = 0
    batch: Batch | None = None


class FrameworkTool(SchemaTool):
    """A tool that its framework runs; of its arguments only the JSON schema is known here."""


class _NoModel:
    """Stands where an agent of ours has its model: the framework asks its own."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Raise `ModelError`: nobody should ask."""
        raise ModelError("This agent's framework asks its own model.")


@dataclass(frozen=True)
class FrameworkAgent(Agent):
    """An agent of another framework, as Sayso knows it: its name, its tools and what a denial means for its run."""

    framework: Framework = field(kw_only=True)

    def manifest(self) -> AgentManifest:
        """Return what the service may know of the agent, and how its runs go on."""
        manifest = super().manifest()
        origin = self.framework.origin.model_copy(update={"manifest_digest": manifest.digest})
        return manifest.model_copy(update={"origin": origin})


def build_agent(
    framework: Framework, name: str, definitions: Mapping[str, ToolDefinition], **options: Any
) -> FrameworkAgent:
    """Return the agent that workers register; `options` are those of `Agent`, such as approval_denial_policy."""
    if not definitions:
        raise InvalidInput(f"The agent {name!r} has no tools, so there is nothing to gate. Give it some.")
    tools = tuple(FrameworkTool(definition=one, function=_refuse) for one in definitions.values())
    given = {"instructions": "", "description": f"An agent of {framework.origin.framework}.", **options}
    return FrameworkAgent(name=name, tools=tools, model=_NoModel(), framework=framework, **given)


Execute = Callable[[JsonObject], Awaitable[Any]]
OnComplete = Callable[[Batch], Awaitable[None]]
Confirm = Callable[[], Awaitable[None]]
"""Make sure, right before a call starts, that the run is still in the same hands; raises where it is not."""


async def know_for_sure() -> None:
    """Know that nobody else can have the run."""


class Gate:
    """The one way to a tool: it runs a call that has leave once, with the arguments decided, and keeps its result.

    With the last call of its batch it reports the results, before the framework can do anything with them.
    """

    def __init__(
        self,
        batch: Batch,
        contexts: Mapping[int, CallContext],
        on_complete: OnComplete,
        unseen: bool = False,
        confirm: Confirm = know_for_sure,
    ) -> None:
        self._batch = batch
        self._contexts = contexts
        self._on_complete = on_complete
        self._began_ms = monotonic_ms()
        self._results: dict[int, ToolResult] = {}
        self._begun: set[int] = set()
        self._unseen = unseen
        self._confirm = confirm
        self.fault: Exception | None = None

    @property
    def calls(self) -> tuple[BatchCall, ...]:
        """The calls of the batch, in the model's order: each may run, or has its result already."""
        return self._batch.calls

    @property
    def latency_ms(self) -> float:
        """How long the gate has been open."""
        return monotonic_ms() - self._began_ms

    def find(self, call_id: str, name: str) -> BatchCall | None:
        """Return the call the framework is about to run, or None for one that nobody was asked about.

        Each call is found until it runs. A model may give two calls one id, or use an id again in a later turn.
        """
        known = (known_id(call_id), name)
        left = [one for one in self.calls if one.call.index not in self._begun]
        found = [one for one in left if (one.call.call_id, one.call.name) == known]
        ready = [one for one in found if one.call.index in self._contexts]
        return next(iter(ready or found), None)

    async def run(self, one: BatchCall, execute: Execute) -> ToolResult:
        """Run a call and return how it ended; one that has ended already is not run again.

        Whatever the tool raises is a failed result. Raises what confirming that the run is still in these hands, and
        what keeping the results raises; then nothing more runs.
        """
        index = one.call.index
        if one.result is not None:
            self._begun.add(index)
            return one.result
        if self.fault is not None or index in self._begun or index not in self._contexts:
            raise self._stop(self.fault or IllegalTransition(f"{one.call.name} has no leave to run, or began before."))
        self._begun.add(index)
        try:
            await self._confirm()
        except Exception as error:
            raise self._stop(error) from error
        token = _CALL.set(self._contexts[index])
        try:
            self._results[index] = await _execute(one.call, execute)
        finally:
            _CALL.reset(token)
        if self._results.keys() == self._contexts.keys():
            await self._complete()
        return self._results[index]

    async def close(self) -> None:
        """Report what the framework never started, where it ended its turn without doing so."""
        if self.fault is not None:
            raise self.fault
        missing = self._contexts.keys() - self._results.keys()
        if not missing:
            return
        for one in self.calls:
            if one.call.index in missing:
                error = None if self._unseen else _BROKEN_OFF if one.call.index in self._begun else _NOT_STARTED
                self._results[one.call.index] = ToolResult(
                    call_id=one.call.call_id, tool_name=one.call.name, success=error is None, error=error
                )
        await self._complete()

    def abandon(self, fault: Exception) -> tuple[frozenset[int], Mapping[int, ToolResult], frozenset[int]]:
        """Let no further call start; return the calls that could, the results there are, and the calls that began.

        A framework that runs its calls unseen may have begun all of them.
        """
        self.fault = self.fault or fault
        planned = frozenset(self._contexts)
        return planned, self._results, planned if self._unseen else planned & self._begun

    async def _complete(self) -> None:
        try:
            await self._on_complete(complete_batch(self._batch, self._results))
        except Exception as error:
            raise self._stop(error) from error

    def _stop(self, fault: Exception) -> Exception:
        """A framework may take what is raised for an answer of the tool; so it is kept here, too."""
        self.fault = fault
        return fault


def current_gate() -> Gate | None:
    """Return the gate of the run that is being driven in this context, if any."""
    return _GATE.get()


def current_call() -> CallContext | None:
    """Return what a tool may know of the call it serves, such as its idempotency key; None outside of a gate."""
    return _CALL.get()


@contextmanager
def open_gate(gate: Gate | None) -> Iterator[None]:
    """Let whatever a framework starts within the block find the gate."""
    token = _GATE.set(gate)
    try:
        yield
    finally:
        _GATE.reset(token)


def known_id(call_id: str) -> str:
    """Return the id that a call has here: the model's own, unless that is longer than is kept.

    Some model endpoints hide kilobytes in it, which have to come back to them; so adapters answer with the model's own.
    """
    return call_id if len(call_id) <= MAX_NAME_CHARS else sha256(call_id.encode()).hexdigest()


def read_turn(asked: Asked) -> ModelTurn:
    """Return the turn of a framework's model, its calls under the ids that they have here."""
    calls = tuple(one.model_copy(update={"call_id": known_id(one.call_id)}) for one in asked.calls)
    return ModelTurn(text=asked.text, calls=calls)


def describe_result(one: BatchCall, result: ToolResult) -> JsonValue:
    """Return what the model is told of a call that ran: its output, and that a reviewer changed its arguments."""
    if not result.success:
        return result.tool_message
    note = describe_edit(one)
    if note is None:
        return result.output
    text = isinstance(result.output, str)
    return f"{note} Result: {result.output}" if text else {"note": note, "output": result.output}


def describe_edit(one: BatchCall) -> str | None:
    """Return the words in which the model is told that a reviewer changed the arguments, or None where nobody did."""
    if one.ask is None or same_json(one.ask.tool.args, one.call.args):
        return None
    return _EDITED.format(args=json.dumps(one.call.args, ensure_ascii=False))


def describe_text(one: BatchCall, result: ToolResult) -> str:
    """Return the same for a framework whose models are told text alone."""
    told = describe_result(one, result)
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)


def describe_refusal(one: BatchCall) -> str | None:
    """Return the words in which the model is told that a call does not run, or None for one that does or did."""
    if one.result is None or one.result.success:
        return None
    return one.result.error or "This call was not run."


async def _execute(call: ToolCall, execute: Execute) -> ToolResult:
    began_ms = monotonic_ms()
    output: JsonValue = None
    error: str | None = None
    try:
        output = plain_json(await execute(call.args))
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        error = "The tool was cancelled from inside."
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - the model is told; the run goes on
        error = describe_error(raised)
    latency_ms = round(monotonic_ms() - began_ms, 3)
    return ToolResult(
        call_id=call.call_id,
        tool_name=call.name,
        success=error is None,
        output=output,
        error=error,
        latency_ms=latency_ms,
    )


def _refuse(*_args: object, **_kwargs: object) -> Any:
    raise InvalidInput("A schema must be complete in itself, and a framework runs its own tools.")


_GATE: ContextVar[Gate | None] = ContextVar("sayso_gate", default=None)
_CALL: ContextVar[CallContext | None] = ContextVar("sayso_call", default=None)
