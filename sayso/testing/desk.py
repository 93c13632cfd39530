"""A desk in memory: real clients and real transitions, without a server and without waiting."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import httpx
from pydantic import ValidationError

from sayso.client import AsyncClient, Client
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS, new_id, new_number
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.policy.engine import Policy
from sayso.core.records.events import Event
from sayso.core.records.items import assign_numbers
from sayso.core.records.run_state import SealedState, seal_state
from sayso.core.records.suspensions import RunRef, Status, SuspensionRecord
from sayso.core.records.tools import ToolResult
from sayso.core.transitions import execution
from sayso.core.transitions.deciding import suspend
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.permits import approved_args
from sayso.errors import InvalidInput, SaysoError
from sayso.runner.agents import Agent
from sayso.runner.batches import PlannedCall, Resumption
from sayso.runner.execution import plan_intent
from sayso.runner.local import MemoryJournal
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState, start_state
from sayso.testing.api import InProcessApi
from sayso.testing.records import DeskRecords, ManualClock
from sayso.testing.requests import describe_misfit, describe_problem, draft_suspension

_WORKER = "test worker"
_LEASE_MS = DAY_MS


async def run_on_desk(desk: DeskRecords, agent: Agent, input_text: str, claimed: JsonObject) -> RunEnded[RunState]:
    """Run the agent to its end, with the steps of a worker: lease, redeem, checkpoint, settle."""
    desk.definitions |= {tool.definition.digest: tool.definition for tool in agent.tools}
    state = start_state(new_id("run"), agent.name, input_text, claimed)
    run = RunRef(
        id=state.run_id,
        agent=agent.name,
        owner=agent.name,
        thread_id=state.thread_id,
        facts=agent.context,
        claimed=claimed,
    )
    draft = draft_suspension(new_id("sus"), run, on_deny=agent.approval_denial_policy)
    record = desk.save(suspend(draft, (), desk.clock.now_ms))
    while True:
        turn = _Turn(desk, desk.save(execution.lease(record, _WORKER, _LEASE_MS, desk.clock.now_ms)))
        outcomes = {
            item.index: Resumption(item.item_id, item.outcome, approved_args(item))
            for item in record.items
            if item.outcome is not None
        }
        reached = await drive(
            ModelRun(agent, state, record.run),
            policy=desk.policy,
            journal=turn,
            outcomes=outcomes,
            now_ms=lambda: desk.clock.now_ms,
        )
        if isinstance(reached, RunEnded):
            turn.settle(reached)
            return replace(reached, events=tuple(desk.trails[state.run_id]))
        state, suspension_id = reached.state, turn.suspend_again(reached)
        seen: set[str] = set()
        while (record := desk.records[suspension_id]).status is Status.PENDING:
            digests = {item.digest for item in record.items if item.open}
            if digests - seen:
                seen |= digests
                desk.review()
            else:
                desk.clock.now_ms = max(desk.clock.now_ms, record.due_at_ms or 0)
                desk.tick()


class _Turn(MemoryJournal[RunState]):
    def __init__(self, desk: DeskRecords, leased: SuspensionRecord) -> None:
        super().__init__(leased.run.id)
        self._desk = desk
        self._leased = leased

    async def recall(self, wanted: Collection[Wanted]) -> Readings:
        return self._desk.counters.read(wanted, self._now_ms)

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: RunState | None
    ) -> Mapping[int, str]:
        step = state.step if state else self._leased.step
        intents = tuple(plan_intent(self._record, self._fence, call, step) for call in calls)
        self._desk.save(execution.redeem(self._record, self._fence, intents, tuple(events), self._now_ms))
        return {intent.index: intent.idempotency_key for intent in intents}

    async def checkpoint(self, state: RunState, events: Sequence[Event]) -> None:
        self._desk.save(execution.checkpoint(self._record, self._fence, _seal(state), tuple(events), self._now_ms))

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        self._desk.save(execution.note_results(self._record, self._fence, results, self._now_ms))

    def suspend_again(self, suspended: RunSuspended[RunState]) -> str:
        leased = self._leased
        following = draft_suspension(new_id("sus"), leased.run, step=suspended.state.step, on_deny=leased.on_deny)
        following = following.model_copy(update={"progress": suspended.state.progress})
        state, events, now_ms = _seal(suspended.state), suspended.events, self._now_ms
        drafts = assign_numbers(suspended.drafts, new_number)
        self._desk.save(execution.suspend_again(self._record, self._fence, following, drafts, state, events, now_ms))
        return following.id

    def settle(self, ended: RunEnded[RunState]) -> None:
        self._desk.save(execution.settle(self._record, self._fence, ended.end, ended.events, self._now_ms))

    @property
    def _record(self) -> SuspensionRecord:
        return self._desk.records[self._leased.id]

    @property
    def _fence(self) -> Fence:
        return Fence(_WORKER, self._record.lease.attempt if self._record.lease else 0, _LEASE_MS)

    @property
    def _now_ms(self) -> int:
        return self._desk.clock.now_ms


def _seal(state: RunState) -> SealedState:
    return seal_state(state.model_dump_json().encode())


URL = "http://desk.test"
"""The address of the desk in its links."""


class InProcessDesk(DeskRecords):
    """A desk in memory, with a clock, a reviewer, and clients. By default it asks about every call.

    As `with InProcessDesk() as desk:` it fails at the end for an instruction that no call has matched. A client that
    waits for a decision advances the clock to the end of its wait. `policy` is a `Policy`, the path of a rules file, or
    its text; a text of one line is a path.
    """

    def __init__(self, policy: Policy | Path | str | None = None, clock: ManualClock | None = None) -> None:
        super().__init__(policy, clock)
        self.drop_requests = 0
        """The number of requests to drop from now on."""

        self.drop_responses = 0
        """The number of requests to process from now on without a response."""

        self._api = InProcessApi(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        """Raise `AssertionError` for an instruction that no call has matched, unless the block failed."""
        if kind is None:
            self.check_used()

    def client(self, agent: str = "agent") -> Client:
        """Return a client of the agent."""
        client = Client(URL, agent, transport=httpx.MockTransport(self.respond), sleep=self.clock.advance)
        client.retry_policy = replace(client.retry_policy, clock_ms=lambda: self.clock.now_ms)
        return client

    def async_client(self, agent: str = "agent") -> AsyncClient:
        """Return an asyncio client of the agent."""

        async def sleep(s: float) -> None:
            self.clock.advance(s)
            await asyncio.sleep(0)

        client = AsyncClient(URL, agent, transport=httpx.MockTransport(self.respond), sleep=sleep)
        client.retry_policy = replace(client.retry_policy, clock_ms=lambda: self.clock.now_ms)
        return client

    def run(self, agent: Agent, input_text: str, *, context: JsonObject | None = None) -> RunEnded[RunState]:
        """Run an agent to its end, and return the end with all events of the run.

        Items without an instruction of the reviewer wait for their fallback: the clock advances to the deadline.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.async_run(agent, input_text, context=context))
        raise InvalidInput("An event loop is running. Write: await desk.async_run(agent, input_text).")

    async def async_run(
        self, agent: Agent, input_text: str, *, context: JsonObject | None = None
    ) -> RunEnded[RunState]:
        """Do the same as `run`, with asyncio."""
        return await run_on_desk(self, agent, input_text, context or {})

    def respond(self, request: httpx.Request) -> httpx.Response:
        if self.drop_requests:
            self.drop_requests -= 1
            raise httpx.ConnectError("the desk is unavailable")
        try:
            response = httpx.Response(200, json=self._api.respond(request))
        except SaysoError as error:
            response = _refuse(error)
        except ValidationError as error:
            response = _refuse(describe_misfit(error))
        if self.drop_responses:
            self.drop_responses -= 1
            raise httpx.ReadTimeout("the response is lost")
        return response


def _refuse(error: SaysoError) -> httpx.Response:
    problem = describe_problem(error)
    return httpx.Response(problem.status, json=problem.document())
