"""The two implementations of `AgentRun`: for our own agents, and for agents of other frameworks."""

import asyncio
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms
from sayso.core.policy.events import PolicyEvent, make_event
from sayso.core.records.run_state import check_state
from sayso.core.records.suspensions import OperatorNote, RunEnd, RunRef, RunStatus
from sayso.core.records.tools import ToolResult
from sayso.errors import FrameworkFault, InvalidInput, ModelError, SaysoError
from sayso.runner import protocol, transcripts
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, complete_batch, results_of
from sayso.runner.execution import CallExecutor, list_started, make_context, run_calls, use_executor
from sayso.runner.judging import name_model
from sayso.runner.models import ChatMessage, ModelTurn
from sayso.runner.tools import describe_error
from sayso.runner.transcripts import Exceeded, RunState


class ModelRun(protocol.AgentRun[RunState]):
    """A run of our own agent: it asks the agent's model and runs its tools in this process."""

    takes_notes = True

    def __init__(self, agent: Agent, state: RunState, run: RunRef | None = None) -> None:
        self.agent = agent
        self._run = run
        self._state = state
        self._earlier_ms = state.spent_ms
        self._began_ms = monotonic_ms()

    @property
    def batch(self) -> Batch | None:
        return self._state.batch

    def describe(self) -> PolicyEvent:
        return transcripts.describe_run(self._state, self._run)

    def snapshot(self, batch: Batch | None = None) -> RunState:
        return self._state.model_copy(update={"batch": batch, "spent_ms": self._elapsed_ms()})

    def find_exceeded(self) -> Exceeded | None:
        return transcripts.find_exceeded(self.agent.budgets, self._state, self._elapsed_ms())

    async def ask(self) -> ModelTurn | RunEnd | Exceeded:
        """Ask the model within the wall time that is left; a model error fails the run."""
        agent, limit_s = self.agent, self.agent.budgets.max_wall_time_s
        system: list[ChatMessage] = [{"role": "system", "content": agent.instructions}] if agent.instructions else []
        definitions = [tool.definition for tool in agent.tools]
        limit = asyncio.timeout(limit_s - self._elapsed_ms() / 1000)
        try:
            async with limit:
                return await agent.model.complete([*system, *self._state.messages], definitions)
        except ModelError as error:
            return RunEnd(status=RunStatus.FAILED, error=error.message)
        except TimeoutError:
            if limit.expired():
                return Exceeded("max_wall_time_s", limit_s)
            raise

    def add_note(self, note: OperatorNote) -> None:
        self._state = transcripts.add_note(self._state, note)

    def accept(self, turn: ModelTurn) -> RunEnd | Exceeded | None:
        """Add the turn. A turn without calls completes the run."""
        self._state = transcripts.add_turn(self._state, turn, name_model(self.agent))
        if not turn.calls:
            return RunEnd(status=RunStatus.COMPLETED, result={"text": turn.text})
        limit = self.agent.budgets.max_tool_calls
        return Exceeded("max_tool_calls", limit) if self._state.tool_calls > limit else None

    async def execute(self, execution: protocol.Execution) -> protocol.Executed:
        _, planned, keys, repeated, journal, _ = execution
        if not planned:
            return protocol.Executed({})
        return protocol.Executed(await run_calls(self.agent, self._state.run_id, planned, keys, journal, repeated))

    def complete(self, batch: Batch) -> None:
        self._state = transcripts.add_results(self._state, results_of(batch), list_started(batch))

    def summarise(self, reason: str, not_started: Sequence[str] = ()) -> JsonValue:
        return transcripts.summarise(self._state, reason, not_started)

    def _elapsed_ms(self) -> float:
        return self._earlier_ms + monotonic_ms() - self._began_ms


class FrameworkRun(protocol.AgentRun[protocol.FrameworkState]):
    """A run of another framework. Results are saved before it sees them, so resuming again runs nothing twice."""

    asks_with_calls = True

    def __init__(self, agent: protocol.FrameworkAgent, run: RunRef, state: protocol.FrameworkState) -> None:
        check_origin(agent, state)
        self.agent = agent
        self._framework = agent.framework
        self._run = run
        self._state = state

    @property
    def batch(self) -> Batch | None:
        return self._state.batch

    def describe(self) -> PolicyEvent:
        return make_event(self._run, self._state.step, self._state.progress)

    def snapshot(self, batch: Batch | None = None) -> protocol.FrameworkState:
        return self._state if batch is None else self._state.model_copy(update={"batch": batch})

    async def ask(self) -> ModelTurn | RunEnd:
        with use_executor(None, self.agent.name):
            try:
                return self._read(await self._framework.begin(self._state.text))
            except Exception as error:  # noqa: BLE001 - raised again, but never as its own cause
                fault = self._name_fault(error)
                raise fault from fault.__cause__

    async def check_ready(self) -> None:
        fault = await self._framework.find_fault(self._native)
        if fault is not None:
            raise InvalidInput(fault)

    async def execute(self, execution: protocol.Execution) -> protocol.Executed:
        """Let the framework resume and run its calls through an executor."""
        batch, planned, keys, repeated, journal, keep = execution
        contexts = {
            entry.call.index: make_context(self._run.id, entry, keys[entry.call.index], repeated) for entry in planned
        }
        executor = CallExecutor(batch, contexts, keep, self._state.unseen, journal.confirm)
        with use_executor(executor, self.agent.name):
            try:
                reached = await self._framework.resume(self._native, executor)
            except Exception as error:  # noqa: BLE001 - raised again, but never as its own cause
                fault = self._name_fault(error)
                unused, results = executor.abandon(fault)
                await self._return_unused(execution, unused, results)
                fault = executor.fault or fault
                raise fault from fault.__cause__
        await executor.close()
        return protocol.Executed({}, self._read(reached))

    def complete(self, batch: Batch) -> None:
        progress = self._state.progress
        if progress is not None:
            self._state = self._state.model_copy(update={"progress": progress.with_tools(list_started(batch))})
        self._state = self.snapshot(batch)

    @property
    def _native(self) -> JsonObject:
        assert self._state.native is not None  # noqa: S101  a batch comes with the state that the framework stopped in
        return self._state.native

    def _read(self, reached: protocol.FrameworkTurn | protocol.Done) -> ModelTurn | RunEnd:
        self.external_events += reached.external_events
        if isinstance(reached, protocol.Done):
            return RunEnd(status=reached.status, result=reached.result, error=reached.error)
        check_state(reached.native)
        progress = self._state.progress
        update = {
            "native": reached.native,
            "unseen": reached.unseen,
            "step": self._state.step + 1,
            "batch": None,
            "progress": progress.with_all_usage(reached.usage) if progress is not None else None,
        }
        self._state = self._state.model_copy(update=update)
        return protocol.read_turn(reached)

    def _name_fault(self, error: Exception) -> Exception:
        """Return the error, or a `FrameworkFault` for one that every further attempt would meet."""
        if isinstance(error, SaysoError) or not self._framework.is_fault(error):
            return error
        fault = FrameworkFault(describe_error(error))
        fault.__cause__ = error
        return fault

    async def _return_unused(
        self, execution: protocol.Execution, not_started: frozenset[int], results: Mapping[int, ToolResult]
    ) -> None:
        """Return permits of calls that no attempt can have started, and save the results of those that ended."""
        unused = not_started.difference(execution.repeated)
        if not unused:
            return
        await execution.journal.return_permits(unused)
        if results and execution.keys.keys() == unused | results.keys():
            batch = complete_batch(self._state.batch or execution.batch, results)
            await execution.journal.checkpoint(self.snapshot(batch), ())


def check_origin(agent: protocol.FrameworkAgent, state: protocol.FrameworkState) -> None:
    """Raise `InvalidInput` for a state that another agent, framework or adapter has written."""
    origin = agent.framework.origin
    written = (state.agent, state.framework, state.state_schema)
    expected = (agent.name, origin.framework, origin.state_schema)
    if written != expected:
        raise InvalidInput(
            f"The run's state is of {' / '.join(written)}; this worker's agent resumes only {' / '.join(expected)}. "
            "Run the version that wrote it."
        )
