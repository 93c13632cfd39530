"""Runs in one process, for scripts and tests: an `InteractionProvider` decides and nothing is saved."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id, now_ms
from sayso.core.policy.counters.charging import CounterBook
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.policy.counters.restraining import is_denial, name_denials
from sayso.core.policy.engine import Policy
from sayso.core.records.decisions import EarlierDenial
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Doubt, ItemDraft
from sayso.core.records.judgements import place_charges
from sayso.core.records.suspensions import OperatorNote
from sayso.core.records.terms import Fallback
from sayso.core.records.tools import ToolResult
from sayso.runner.agents import DENY, Agent
from sayso.runner.batches import BatchCall, PlannedCall, Resumption
from sayso.runner.fallbacks import fall_back
from sayso.runner.loop import NO_OUTCOMES, drive
from sayso.runner.protocol import RunEnded, State
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState, start_state


class InteractionProvider(Protocol):
    """Decides on the drafts of a run."""

    async def answer(self, drafts: Sequence[ItemDraft]) -> Mapping[int, Resumption]:
        """Return outcomes by call index; `sayso.runner.fallbacks.resolve` makes one. A missing one denies the call."""


@dataclass(frozen=True)
class HeadlessProvider:
    """Decide by fallbacks alone. An approval counts only if the rule has `unattended_approval`."""

    approval_fallback: Fallback = DENY
    input_fallback: Fallback = DENY

    async def answer(self, drafts: Sequence[ItemDraft]) -> Mapping[int, Resumption]:
        return fall_back(drafts, self.approval_fallback, self.input_fallback, now_ms())


class MemoryJournal(Generic[State]):
    """A journal in memory. `events` holds all events, `state` the state that was saved last."""

    def __init__(self, run_id: str) -> None:
        self.events: list[Event] = []
        self.state: State | None = None
        self.begun: dict[int, PlannedCall] = {}
        self.results: dict[int, ToolResult] = {}
        self._run_id = run_id
        self._batches = 0
        self._counters = CounterBook()

    async def recall(self, wanted: Collection[Wanted]) -> Readings:
        return self._counters.read(wanted, now_ms())

    def note_asked(self, drafts: Sequence[ItemDraft]) -> None:
        """Count the calls that a person is asked about."""
        self._counters.add(place_charges((charge for draft in drafts for charge in draft.asked), now_ms()))

    def note_denied(self, drafts: Sequence[ItemDraft], outcomes: Mapping[int, Resumption]) -> None:
        """Remember the calls that a person has denied."""
        for draft in drafts:
            decided = outcomes.get(draft.index)
            if decided is not None and is_denial(decided.outcome):
                outcome = decided.outcome
                denial = EarlierDenial(
                    by=outcome.by.id, at_ms=outcome.at_ms, message=outcome.message or "", run_id=self._run_id
                )
                self._counters.note_denial(name_denials("", draft.tool.name, draft.tool.args), denial)

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: State | None
    ) -> Mapping[int, str]:
        self._counters.add(place_charges((charge for call in calls for charge in call.charges), now_ms()))
        self.events += events
        self.state = state or self.state
        self.begun = {planned.call.index: planned for planned in calls}
        return {index: self._key(planned) for index, planned in self.begun.items()}

    async def list_notes(self) -> Sequence[OperatorNote]:
        return ()  # nobody can write to a run that no desk knows

    async def offer_undo(self, agent: Agent, calls: Sequence[BatchCall]) -> Sequence[Event]:
        return ()  # nobody can undo what no desk knows, so `run_agent` lets no call run under a veto

    async def return_permits(self, unused: Collection[int]) -> None:
        self.begun = {index: planned for index, planned in self.begun.items() if index not in unused}

    async def checkpoint(self, state: State, events: Sequence[Event]) -> None:
        self.events += events
        self.state = state
        self.begun, self.results = {}, {}
        self._batches += 1

    async def confirm(self) -> None:
        """No other process can hold the run."""

    def note_start(self, key: str) -> None:
        """Nobody reads notes after this process."""

    def note_end(self, key: str, result: ToolResult) -> None:
        """Nobody reads notes after this process."""

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        self.results |= results

    def started_before(self) -> bool:
        return bool(self.begun)

    def finished(self) -> Mapping[int, ToolResult]:
        return self.results

    def unfinished(self) -> Mapping[int, Doubt]:
        return {
            index: Doubt(begun_at_ms=0, holder="this process", attempt=1, idempotency_key=self._key(planned))
            for index, planned in self.begun.items()
            if index not in self.results
        }

    def _key(self, planned: PlannedCall) -> str:
        return planned.key or f"{self._run_id}:{self._batches}.{planned.call.index}"


async def run_agent(
    agent: Agent, input_text: str, *, policy: Policy, provider: InteractionProvider, context: JsonObject | None = None
) -> RunEnded[RunState]:
    """Run the agent to its end; `events` of the result are all events of the run, in order."""
    agent = _without_undo(agent)
    state = start_state(new_id("run"), agent.name, input_text, context)
    journal: MemoryJournal[RunState] = MemoryJournal(state.run_id)
    outcomes = NO_OUTCOMES
    while True:
        reached = await drive(ModelRun(agent, state), policy=policy, journal=journal, outcomes=outcomes)
        journal.events += reached.events
        if isinstance(reached, RunEnded):
            return replace(reached, events=tuple(journal.events))
        drafts, first = reached.drafts, reached.drafts[0]
        items = [{"call_id": draft.call_id, "index": draft.index, "tool_name": draft.tool.name} for draft in drafts]
        data = {"tool_name": first.tool.name, "reason": first.prompt.reason, "payload": {"items": items}}
        journal.events.append(Event(type=EventType.RUN_PAUSED, data=data))
        journal.note_asked(reached.drafts)
        state, outcomes = reached.state, await provider.answer(drafts)
        journal.note_denied(drafts, outcomes)
        approved = all(draft.index in outcomes and outcomes[draft.index].outcome.may_run for draft in drafts)
        journal.events.append(Event(type=EventType.RUN_RESUMED, data={"approved": approved}))


def _without_undo(agent: Agent) -> Agent:
    """Return the agent with tools that nothing can undo: people then decide on calls under a veto before they run."""
    if not any(tool.undo for tool in agent.tools):
        return agent
    plain = (
        replace(tool, undo=None, definition=tool.definition.model_copy(update={"reversible": False}))
        for tool in agent.tools
    )
    return replace(agent, tools=tuple(plain))
