"""Run an agent in one process, for scripts and tests: whoever is asked answers here, and nothing is saved."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol

from sayso.canonical_json import JsonObject
from sayso.clock import new_id, now_ms
from sayso.policy.engine import Policy
from sayso.records.events import Event, EventType
from sayso.records.items import Doubt, ItemDraft
from sayso.records.terms import Fallback
from sayso.records.tool_calls import ToolResult
from sayso.runner.agents import DENY, Agent
from sayso.runner.batches import PlannedCall, Resumption
from sayso.runner.fallbacks import fall_back
from sayso.runner.loop import NO_OUTCOMES, drive
from sayso.runner.protocol import RunEnded, RunSuspended, State
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState, start_state


class InteractionProvider(Protocol):
    """Whoever answers what a run asks."""

    async def answer(self, drafts: Sequence[ItemDraft]) -> Mapping[int, Resumption]:
        """Return an answer to every ask, by its call's index; `sayso.runner.fallbacks.resolve` makes one. None means no."""
        ...


@dataclass(frozen=True)
class HeadlessProvider:
    """Answer with fallbacks alone. An approval counts only where the rule says `unattended_approval`."""

    approval_fallback: Fallback = DENY
    input_fallback: Fallback = DENY

    async def answer(self, drafts: Sequence[ItemDraft]) -> Mapping[int, Resumption]:
        """Return what the fallbacks say."""
        return fall_back(drafts, self.approval_fallback, self.input_fallback, now_ms())


class MemoryJournal(Generic[State]):
    """A journal that is gone with its process; it shows the events, and what was saved last."""

    def __init__(self, run_id: str) -> None:
        self.events: list[Event] = []
        self.state: State | None = None
        self.begun: dict[int, PlannedCall] = {}
        self.results: dict[int, ToolResult] = {}
        self._run_id = run_id
        self._batches = 0

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: State | None
    ) -> Mapping[int, str]:
        """Note which calls are about to start."""
        self.events += events
        self.state = state or self.state
        self.begun = {planned.call.index: planned for planned in calls}
        return {index: self._key(planned) for index, planned in self.begun.items()}

    async def checkpoint(self, state: State, events: Sequence[Event]) -> None:
        """Note how far the run has come."""
        self.events += events
        self.state = state
        self.begun, self.results = {}, {}
        self._batches += 1

    async def return_permits(self, unused: Collection[int]) -> None:
        """Forget calls that never started."""
        self.begun = {index: planned for index, planned in self.begun.items() if index not in unused}

    async def confirm(self) -> None:
        """Find it in the same hands: nobody else can have it."""

    def note_start(self, key: str) -> None:
        """Leave no word: whoever could read it is gone as well."""

    def note_end(self, key: str, result: ToolResult) -> None:
        """Leave no word: whoever could read it is gone as well."""

    def started_before(self) -> bool:
        """Whether the saved batch was begun before."""
        return bool(self.begun)

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        """Note how calls ended while others of their batch still run."""
        self.results |= results

    def finished(self) -> Mapping[int, ToolResult]:
        """The results that were noted of calls whose batch was not."""
        return self.results

    def unfinished(self) -> Mapping[int, Doubt]:
        """The calls that were begun and of which no result was noted."""
        return {
            index: Doubt(begun_at_ms=0, holder="this process", attempt=1, idempotency_key=self._key(planned))
            for index, planned in self.begun.items()
            if index not in self.results
        }

    def _key(self, planned: PlannedCall) -> str:
        return planned.key or f"{self._run_id}:{self._batches}.{planned.call.index}"


async def run_agent(
    agent: Agent,
    input_text: str,
    *,
    policy: Policy,
    provider: InteractionProvider,
    context: JsonObject | None = None,
) -> RunEnded[RunState]:
    """Run the agent to its end; the `RunEnded` holds every event of the run, in order."""
    state = start_state(new_id("run"), agent.name, input_text, context)
    journal: MemoryJournal[RunState] = MemoryJournal(state.run_id)
    outcomes = NO_OUTCOMES
    while True:
        rest = await drive(ModelRun(agent, state), policy=policy, journal=journal, outcomes=outcomes)
        journal.events += rest.events
        if isinstance(rest, RunEnded):
            return replace(rest, events=tuple(journal.events))
        journal.events.append(_run_paused(rest))
        state, outcomes = rest.state, await provider.answer(rest.drafts)
        journal.events.append(_run_resumed(rest, outcomes))


def _run_paused(pause: RunSuspended[RunState]) -> Event:
    first = pause.drafts[0]
    asked = [{"call_id": ask.call_id, "index": ask.index, "tool_name": ask.tool.name} for ask in pause.drafts]
    data = {"tool_name": first.tool.name, "reason": first.prompt.reason, "payload": {"items": asked}}
    return Event(type=EventType.RUN_PAUSED, data=data)


def _run_resumed(pause: RunSuspended[RunState], outcomes: Mapping[int, Resumption]) -> Event:
    approved = all(ask.index in outcomes and outcomes[ask.index].outcome.may_run for ask in pause.drafts)
    return Event(type=EventType.RUN_RESUMED, data={"approved": approved})
