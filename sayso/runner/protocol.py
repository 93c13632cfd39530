"""Protocol between the run loop and its agents: `AgentRun` is what it drives, adapters implement `Framework`."""

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import same_json
from sayso.core.records.base import Immutable
from sayso.core.records.events import Event
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import ModelUsage, OperatorNote, Origin, Progress, RunEnd, RunStatus
from sayso.core.records.tools import ToolDefinition, ToolResult
from sayso.errors import InvalidInput, ModelError, SaysoError
from sayso.runner.agents import Agent, AgentManifest
from sayso.runner.batches import Batch, BatchCall, PlannedCall
from sayso.runner.execution import CallExecutor, Journal
from sayso.runner.judging import known_id
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall
from sayso.runner.schema_tools import SchemaTool
from sayso.runner.transcripts import Exceeded

_EDITED = "A reviewer changed the arguments before this ran; it ran with {args}."

State = TypeVar("State", bound=Immutable)


@dataclass(frozen=True)
class RunSuspended(Generic[State]):
    """The run waits for people. The caller saves state and events in the commit that saves the suspension."""

    state: State
    drafts: tuple[ItemDraft, ...]
    events: tuple[Event, ...]
    external_events: tuple[JsonObject, ...] = ()


@dataclass(frozen=True)
class RunEnded(Generic[State]):
    """The run is over: completed, degraded or failed. The caller saves state and events."""

    state: State
    status: RunStatus
    result: JsonValue
    error: str | None
    events: tuple[Event, ...]
    external_events: tuple[JsonObject, ...] = ()

    @property
    def end(self) -> RunEnd:
        """The end as it is saved on the suspension."""
        return RunEnd(status=self.status, result=self.result, error=self.error)


class Execution(NamedTuple):
    """A batch with redeemed permits; `keep` saves results, calls in `repeated` may have run in an earlier attempt."""

    batch: Batch
    planned: tuple[PlannedCall, ...]
    keys: Mapping[int, str]
    repeated: Collection[int]
    journal: Journal[Any]
    keep: Callable[[Batch], Awaitable[None]]


class Executed(NamedTuple):
    """The results of calls that the loop has still to save, or the turn or end that the agent has reached since."""

    results: Mapping[int, ToolResult]
    reached: ModelTurn | RunEnd | None = None


class AgentRun(ABC, Generic[State]):
    """One run of an agent, driven by the loop: its state, and the way to ask its model and to run its tools."""

    agent: Agent
    asks_with_calls = False
    """Whether executing calls also asks the model, so that a batch executes whole or not at all."""
    takes_notes = False
    """Whether its model gets the notes of people."""
    external_events: tuple[JsonObject, ...] = ()
    """The framework's own events since the drive began."""

    @abstractmethod
    def snapshot(self, batch: Batch | None = None) -> State:
        """Return the state to save, with `batch` in place of the run's own if given."""

    @property
    @abstractmethod
    def batch(self) -> Batch | None:
        """The saved batch, unless the run waits for its model."""

    @abstractmethod
    def describe(self) -> PolicyEvent:
        """Return the facts about the run that rules read."""

    def find_exceeded(self) -> Exceeded | None:
        """Return the budget that allows no further turn, if any. Frameworks keep their own budgets."""
        return None

    @abstractmethod
    async def ask(self) -> ModelTurn | RunEnd | Exceeded:
        """Ask the model and return its turn, or how the run ends without one."""

    def add_note(self, note: OperatorNote) -> None:
        """Add a person's note to the state, for the model's next turn."""

    def accept(self, turn: ModelTurn) -> RunEnd | Exceeded | None:
        """Add a turn to the state. Return why the run ends with it, or None if its calls need judging."""
        return None

    async def check_ready(self) -> None:
        """Raise `InvalidInput` if the agent cannot run its calls; called before any permit is redeemed."""

    @abstractmethod
    async def execute(self, execution: Execution) -> Executed:
        """Run the planned calls."""

    @abstractmethod
    def complete(self, batch: Batch) -> None:
        """Add the results of a completed batch to the state."""

    def summarise(self, reason: str, not_started: Sequence[str] = ()) -> JsonValue:
        """Return the partial result of a run that ends early. Only a framework can read its own transcript."""
        return {"reason": reason}


class ToolFailed(SaysoError):
    """The tool failed, and its framework has said how."""


@dataclass(frozen=True)
class FrameworkTurn:
    """The framework stopped before the calls of one turn; `native` is its whole state as plain JSON.

    A call whose tool runs out of sight is `unseen`: it counts as run once the framework has resumed. `usage` is what
    the model calls used since the framework began or resumed; None is unknown.
    """

    native: JsonObject
    calls: tuple[RequestedCall, ...]
    text: str = ""
    unseen: bool = False
    external_events: tuple[JsonObject, ...] = ()
    usage: tuple[ModelUsage, ...] | None = None


@dataclass(frozen=True)
class Done:
    """The framework has ended its run: completed, or with another status and an error."""

    result: JsonValue
    status: RunStatus = RunStatus.COMPLETED
    error: str | None = None
    external_events: tuple[JsonObject, ...] = ()


class Framework(Protocol):
    """One agent of another framework, behind an adapter. It keeps no state between two calls."""

    @property
    def origin(self) -> Origin:
        """The framework, and the format of its state."""

    def is_fault(self, error: Exception) -> bool:
        """Return whether every further attempt from the same state would meet this error."""

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run up to the first turn that calls tools, without starting any, or to the end."""

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return why the framework cannot resume from this state, or None; no call has started yet."""

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Resume from this state: run approved calls through the executor, give the model the other results."""


class FrameworkState(Immutable):
    """Saved state of a run of another framework; `sayso.framework/1`. `native` is missing until its first stop."""

    format: Literal["sayso.framework/1"] = "sayso.framework/1"
    agent: str
    framework: str
    state_schema: str
    text: str = ""
    native: JsonObject | None = None
    unseen: bool = False
    step: int = 0
    batch: Batch | None = None
    progress: Progress | None = None


class FrameworkTool(SchemaTool):
    """A tool that its framework runs; only the JSON Schema of its arguments is known here."""


class _NoModel:
    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        raise ModelError("This agent's framework asks its own model.")


@dataclass(frozen=True)
class FrameworkAgent(Agent):
    """An agent of another framework: its name, its tools, and the effect of a denial on its run."""

    framework: Framework = field(kw_only=True)

    def manifest(self) -> AgentManifest:
        """Return what the service stores about the agent, and how its runs resume."""
        manifest = super().manifest()
        origin = self.framework.origin.model_copy(update={"manifest_digest": manifest.digest})
        return manifest.model_copy(update={"origin": origin})


def build_agent(
    framework: Framework, name: str, definitions: Mapping[str, ToolDefinition], **options: Any
) -> FrameworkAgent:
    """Return the agent that workers register; `options` are those of `Agent`, such as approval_denial_policy."""
    if not definitions:
        raise InvalidInput(f"The agent {name!r} has no tools, so there is nothing to gate. Add at least one tool.")
    tools = tuple(FrameworkTool(definition=definition, function=_refuse) for definition in definitions.values())
    given = {"instructions": "", "description": f"An agent of {framework.origin.framework}.", **options}
    return FrameworkAgent(name=name, tools=tools, model=_NoModel(), framework=framework, **given)


def read_turn(turn: FrameworkTurn) -> ModelTurn:
    """Return the turn of a framework's model, its calls under the ids that are saved."""
    calls = tuple(call.model_copy(update={"call_id": known_id(call.call_id)}) for call in turn.calls)
    return ModelTurn(text=turn.text, calls=calls)


def describe_result(entry: BatchCall, result: ToolResult) -> JsonValue:
    """Return the result of a call for the model: its output, with a note if a reviewer changed the arguments."""
    if not result.success:
        return result.tool_message
    note = describe_edit(entry)
    if note is None:
        return result.output
    text = isinstance(result.output, str)
    return f"{note} Result: {result.output}" if text else {"note": note, "output": result.output}


def describe_edit(entry: BatchCall) -> str | None:
    """Return a note for the model that a reviewer changed the arguments, or None if nobody did."""
    if entry.ask is None or same_json(entry.ask.tool.args, entry.call.args):
        return None
    return _EDITED.format(args=json.dumps(entry.call.args, ensure_ascii=False))


def describe_text(entry: BatchCall, result: ToolResult) -> str:
    """Return the result of a call for a model that takes text alone."""
    described = describe_result(entry, result)
    return described if isinstance(described, str) else json.dumps(described, ensure_ascii=False)


def describe_refusal(entry: BatchCall) -> str | None:
    """Return the reason for the model why a call does not run, or None for one that may run or did."""
    if entry.result is None or entry.result.success:
        return None
    return entry.result.error or "This call was not run."


def _refuse(*_args: object, **_kwargs: object) -> Any:
    raise InvalidInput("A schema must be complete in itself, and a framework runs its own tools.")
