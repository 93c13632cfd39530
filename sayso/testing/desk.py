"""A desk in memory: real clients and real transitions, without a server and without waiting."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
from pydantic import ValidationError

from sayso.canonical_json import JsonObject
from sayso.client import AsyncClient, Client
from sayso.errors import IdempotencyConflict, InvalidInput, SaysoError
from sayso.policy.engine import Policy
from sayso.policy.external import describe_item, judge_final
from sayso.policy.grants.deciding import decide_with_grant
from sayso.policy.memory.counting import CounterBook
from sayso.policy.packages import read_policy
from sayso.policy.rules import Action
from sayso.records.decisions import Actor, Decision, DecisionAction, DecisionRequest
from sayso.records.events import Event
from sayso.records.items import Item, final_args
from sayso.records.suspensions import Change, Status, SuspensionRecord
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.agents import Agent
from sayso.runner.protocol import RunEnded
from sayso.runner.transcripts import RunState
from sayso.testing.api import InProcessApi
from sayso.testing.requests import check_outline, describe_misfit, describe_problem
from sayso.testing.reviewers import FakeReviewer
from sayso.testing.runs import run_on_desk
from sayso.transitions import client_execution
from sayso.transitions.closing import mask_contents
from sayso.transitions.deadlines import keep_time
from sayso.transitions.deciding import ask_again

URL = "http://desk.test"
"""The address of the desk in its links."""


@dataclass
class ManualClock:
    """A clock that moves only when it is advanced."""

    now_ms: int = 1_700_000_000_000

    def advance(self, s: float) -> None:
        """Move the clock forward by `s` seconds."""
        self.now_ms += round(s * 1000)


class InProcessDesk:
    """A desk in memory, with a clock, one reviewer, and clients. By default it asks about every call.

    A client that waits for a decision advances the clock to the end of its wait. `policy` is a `Policy`, the path of a
    rules file, or its text; a text of one line is a path.
    """

    def __init__(self, policy: Policy | Path | str | None = None, clock: ManualClock | None = None) -> None:
        given = policy if policy is not None else Policy(default=Action.REQUEST_APPROVAL)
        self.policy = given if isinstance(given, Policy) else read_policy(given)
        self.clock = clock or ManualClock()
        self.records: dict[str, SuspensionRecord] = {}
        self.trails: dict[str, list[Event]] = {}
        self.definitions: dict[str, ToolDefinition] = {}
        self.counters = CounterBook()
        self.reviewer = FakeReviewer(self, "reviewer")
        self.drop_requests = 0
        """The number of requests to drop from now on."""

        self.drop_responses = 0
        """The number of requests to process from now on without a response."""

        self._api = InProcessApi(self)

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

    @property
    def waiting(self) -> list[tuple[SuspensionRecord, Item]]:
        """The open items, oldest first."""
        pending = [record for record in self.records.values() if record.status is Status.PENDING]
        return [(record, item) for record in pending for item in record.items if item.open]

    def decide(self, record: SuspensionRecord, item: Item, action: str, given: JsonObject, by: Actor) -> None:
        """Decide an item. Raises the errors of a real desk."""
        record = self.records[record.id]  # a decision on another item may have changed it
        try:
            request = DecisionRequest.model_validate({"action": action, "digest": item.digest, **given})
        except ValidationError as error:
            raise describe_misfit(error) from error
        decision = Decision(
            id=f"dec_{len(self.trails)}_{record.version}_{by.id}",
            suspension_id=record.id,
            suspension_version=record.version,
            item_id=item.item_id,
            action=DecisionAction(request.action),
            args=request.args,
            value=request.value,
            message=request.message,
            args_digest=request.digest,
            number=request.number or item.secret_number or None,
            by=by,
            at_ms=self.clock.now_ms,
        )
        change = decide_with_grant(self.policy, record, decision, request, self.clock.now_ms)
        if request.action == "value" and item.response_schema is not None:
            check_outline(item.response_schema, request.value, "value")
        if request.action == "value" or request.args is not None:
            args = final_args(item, edited=request.args, value=request.value)
            definition = self.definitions[item.tool.definition]
            check_outline(definition.parameters, args, "args")
            wanted = self.policy.list_wanted(describe_item(record, item, args))
            readings = self.counters.read(wanted, self.clock.now_ms)
            if draft := judge_final(self.policy, record, item, args, definition, readings).renewed:
                change = ask_again(record, decision, draft, self.clock.now_ms)
        self.save(change)

    def tick(self) -> None:
        """Apply what is due: deadlines, escalations, reminders, and permits that expired unused."""
        for record in list(self.records.values()):
            if record.status is Status.PENDING:
                self.save(keep_time(record, self.clock.now_ms))
            elif record.due_at_ms is not None and record.resume.mode == "poll":
                self.save(client_execution.lapse(record, self.clock.now_ms))

    def save(self, change: Change) -> SuspensionRecord:
        """Save a change, and return the saved record."""
        record = change.record
        self.counters.apply(self.records.get(record.id), change)
        self.records[record.id] = record.model_copy(update={"version": record.version + 1})
        if change.following is not None:
            self.records[change.following.id] = change.following
        self.trails.setdefault(record.run.id, []).extend(mask_contents(record, change.events))
        return self.records[record.id]

    def find_repeated(self, suspension_id: str, fingerprint: str, key: str) -> SuspensionRecord | None:
        """Return what an earlier request with the key has made; raises `IdempotencyConflict` for another request."""
        known = self.records.get(suspension_id)
        if known is not None and known.run.request_id != fingerprint:
            raise IdempotencyConflict(idempotency_key=key)
        return known

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
