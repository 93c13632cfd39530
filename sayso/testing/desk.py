"""Test agents without a server: a desk in the test's own process, a reviewer who follows orders, a clock to turn.

    desk = InProcessDesk()
    desk.reviewer.denies("refund", message="Not this one")
    with pytest.raises(Denied):
        refund_with(desk.client())(order="A-1", amount=5)

An agent runs on it as well: `desk.run(agent, "Refund A-1")`.

The clients are the real ones; behind them are the desk's own verbs on records in memory. Nothing waits: whoever waits
for a decision that does not come has the clock turned to the end of their wait.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from sayso.canonical_json import JsonObject, digest_json, parse_json
from sayso.client.clients import AsyncClient, Client
from sayso.errors import IdempotencyConflict, InvalidInput, NotFound, SaysoError
from sayso.policy.engine import Policy
from sayso.policy.external import evaluate_calls, judge_final
from sayso.policy.packages import read_policy
from sayso.policy.rules import Action
from sayso.records.decisions import Actor, ActorKind, Decision, DecisionAction, DecisionRequest, Report
from sayso.records.events import Event
from sayso.records.items import Item, final_args
from sayso.records.suspensions import Change, ResumeSpec, RunRef, Status, SuspensionRecord
from sayso.records.terms import REPORT_WITHIN_S
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.agents import Agent
from sayso.runner.protocol import RunEnded
from sayso.runner.transcripts import RunState
from sayso.testing.requests import (
    AskedBody,
    check_asked,
    check_outline,
    describe_misfit,
    describe_problem,
    read_call,
    show_dates,
    show_part,
    show_record,
)
from sayso.testing.reviewers import FakeReviewer
from sayso.testing.runs import run_on_desk
from sayso.transitions import client_execution
from sayso.transitions.deciding import ask_again, cancel, decide, find_item, suspend
from sayso.transitions.execution import approved_args
from sayso.transitions.timing import keep_time

__all__ = ["URL", "FakeReviewer", "InProcessDesk", "TurnedClock"]

URL = "http://desk.test"
"""Where a desk in the test's own process says it is."""

_PATHS = re.compile(r"/api/v1/(suspensions|runs)(?:/([^/]+))?(?:/items/([^/]+))?(?:/([a-z-]+))?")


@dataclass
class TurnedClock:
    """A clock that stands still until it is turned."""

    now_ms: int = 1_700_000_000_000

    def turn(self, s: float) -> None:
        """Let so much time pass."""
        self.now_ms += round(s * 1000)


class InProcessDesk:
    """A desk in memory, with its clock, one reviewer, and clients that speak with it.

    The policy asks about every call unless another one is given: a `Policy`, the path of a rules file, or its text.
    A text of one line is a path.
    """

    def __init__(self, policy: Policy | Path | str | None = None, clock: TurnedClock | None = None) -> None:
        given = policy if policy is not None else Policy(default=Action.REQUEST_APPROVAL)
        self.policy = given if isinstance(given, Policy) else read_policy(given)
        self.clock = clock or TurnedClock()
        self.records: dict[str, SuspensionRecord] = {}
        self.trails: dict[str, list[Event]] = {}
        self.definitions: dict[str, ToolDefinition] = {}
        self.reviewer = FakeReviewer(self, "reviewer")
        self.lost = 0
        """How many requests are lost from now on, with their answers."""

        self.lost_answers = 0
        """Of how many requests the answers alone are lost from now on."""

    def client(self, agent: str = "agent") -> Client:
        """Return a client of an agent of this name."""
        client = Client(URL, agent, transport=httpx.MockTransport(self.reply), sleep=self.clock.turn)
        client.patience = self._patience(client.patience)
        return client

    def async_client(self, agent: str = "agent") -> AsyncClient:
        """Return a client of an agent of this name, for asyncio."""

        async def sleep(s: float) -> None:
            self.clock.turn(s)
            await asyncio.sleep(0)

        client = AsyncClient(URL, agent, transport=httpx.MockTransport(self.reply), sleep=sleep)
        client.patience = self._patience(client.patience)
        return client

    def run(self, agent: Agent, input_text: str, *, context: JsonObject | None = None) -> RunEnded[RunState]:
        """Run an agent to its end, the reviewer deciding what it asks; the `RunEnded` holds every event of the run.

        Where the reviewer has no orders, the clock is turned until the deadline's fallback decides.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.async_run(agent, input_text, context=context))
        raise InvalidInput("An event loop runs here already. Write: await desk.async_run(agent, input_text).")

    async def async_run(
        self, agent: Agent, input_text: str, *, context: JsonObject | None = None
    ) -> RunEnded[RunState]:
        """Run an agent as `run` does, for asyncio."""
        return await run_on_desk(self, agent, input_text, context or {})

    @property
    def waiting(self) -> list[tuple[SuspensionRecord, Item]]:
        """What waits for a person, the oldest first."""
        pending = [one for one in self.records.values() if one.status is Status.PENDING]
        return [(record, item) for record in pending for item in record.items if item.open]

    def decide(self, record: SuspensionRecord, item: Item, action: str, given: JsonObject, by: str) -> None:
        """Put somebody's word on an item; raises what the desk would."""
        record = self.records[record.id]  # another item of it may have been decided since it was read
        try:
            word = DecisionRequest.model_validate({"action": action, "digest": item.digest, **given})
        except ValidationError as error:
            raise describe_misfit(error) from error
        decision = Decision(
            id=f"dec_{len(self.trails)}_{record.version}_{by}",
            suspension_id=record.id,
            suspension_version=record.version,
            item_id=item.item_id,
            action=DecisionAction(word.action),
            args=word.args,
            value=word.value,
            message=word.message,
            args_digest=word.digest,
            by=Actor(id=by, kind=ActorKind.HUMAN),
            at_ms=self.clock.now_ms,
        )
        changed = decide(record, decision, self.clock.now_ms)
        if word.action == "value" and item.response_schema is not None:
            check_outline(item.response_schema, word.value, "value")
        if word.action == "value" or word.args is not None:
            args = final_args(item, edited=word.args, value=word.value)
            definition = self.definitions[item.tool.definition]
            check_outline(definition.parameters, args, "args")
            if anew := judge_final(self.policy, record, item, args, definition):
                changed = ask_again(record, decision, anew, self.clock.now_ms)
        self.save(changed)

    def keep_time(self) -> None:
        """Do what is due at the clock's time: deadlines, escalations, reminders, and leave that nobody used."""
        for record in list(self.records.values()):
            if record.status is Status.PENDING:
                self.save(keep_time(record, self.clock.now_ms))
            elif record.due_at_ms is not None and record.resume.mode == "poll":
                self.save(client_execution.lapse(record, self.clock.now_ms))

    def save(self, change: Change) -> SuspensionRecord:
        """Keep a change, and return its record as it is kept."""
        record = change.record
        self.records[record.id] = record.model_copy(update={"version": record.version + 1})
        if change.following is not None:
            self.records[change.following.id] = change.following
        self.trails.setdefault(record.run.id, []).extend(change.events)
        return self.records[record.id]

    def reply(self, request: httpx.Request) -> httpx.Response:
        """Answer one request as the desk's API does."""
        if self.lost:
            self.lost -= 1
            raise httpx.ConnectError("the desk is away")
        try:
            answer = self._answer(request)
        except SaysoError as error:
            answer = _refuse(error)
        except ValidationError as error:
            answer = _refuse(describe_misfit(error))
        if self.lost_answers:
            self.lost_answers -= 1
            raise httpx.ReadTimeout("the answer is lost")
        return answer

    def _patience(self, patience: Any) -> Any:
        return type(patience)(patience.url, patience.patience_s, lambda: float(self.clock.now_ms))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.keep_time()
        found = _PATHS.fullmatch(request.url.path)
        agent = request.headers.get("authorization", "").removeprefix("Bearer ")
        body: Any = parse_json(request.content) if request.content else {}
        if found is None:
            raise NotFound("There is nothing at this path of a desk in a test.")
        room, id_, item_id, verb = found.groups()
        key = request.headers.get("idempotency-key", "")
        asked = _Asked(agent, key, id_ or "", item_id or "", body, request.url.params)
        doings: Mapping[tuple[str, str, str | None], Callable[[_Asked], JsonValue]] = {
            ("POST", "suspensions", None): self._ask,
            ("GET", "suspensions", None): self._find,
            ("POST", "suspensions", "decision"): self._decide,
            ("POST", "suspensions", "redeem"): self._redeem,
            ("POST", "suspensions", "outcome"): self._conclude,
            ("POST", "suspensions", "in-doubt"): self._mark_in_doubt,
            ("GET", "runs", None): self._find_run,
            ("POST", "runs", "cancel"): self._cancel,
        }
        doing = doings.get((request.method, room, verb))
        if doing is None:
            raise NotFound("A desk in a test does not do that; use a real one.")
        return httpx.Response(200, json=doing(asked))

    def _ask(self, asked: "_Asked") -> JsonValue:
        body = AskedBody.model_validate_json(to_json(asked.body))
        name = sha256(f"{asked.agent} {asked.key}".encode()).hexdigest()[:32]
        told = digest_json(asked.body)
        known = self.records.get(f"sus_{name}")
        if known is not None:
            if known.run.request_id != told:
                raise IdempotencyConflict(idempotency_key=asked.key)
            return show_record(known)
        run_id = f"run_{name}"
        run = RunRef(
            id=run_id,
            agent=asked.agent,
            owner=asked.agent,
            thread_id=body.thread_id or run_id,
            tags=body.tags,
            title=body.title,
            request_id=told,
            claimed=body.context,
        )
        calls = [read_call(*one) for one in enumerate(body.calls)]
        earlier = [one for one in self.records.values() if one.run.owner == asked.agent]
        turn = max(body.step or 1, 1 + sum(one.run.thread_id == run.thread_id for one in earlier))
        drafts, judged = evaluate_calls(self.policy, run, calls, turn)
        for call, ask in zip(calls, drafts, strict=True):
            check_asked(call, ask)
        self.definitions |= {one.definition.digest: one.definition for one in calls}
        draft = SuspensionRecord(
            step=turn,
            id=f"sus_{name}",
            tenant="default",
            status=Status.PENDING,
            created_at_ms=0,
            updated_at_ms=0,
            run=run,
            resume=ResumeSpec(mode="poll", resumer="poll", coverage=body.coverage),
            on_deny=body.on_deny,
        )
        begun = suspend(draft, drafts, self.clock.now_ms)
        return show_record(self.save(Change(begun.record, judged + begun.events)))

    def _find(self, asked: "_Asked") -> JsonValue:
        if not asked.id:
            pending = dict.fromkeys(record.id for record, _ in self.waiting)
            return {"suspensions": [show_record(self.records[one]) for one in pending], "next_skip": None}
        self.reviewer.look()
        wait_s = int(asked.query.get("wait", "0").rstrip("s"))
        if self._own(asked).status is Status.PENDING and wait_s:
            self.clock.turn(wait_s)
            self.keep_time()
        return show_record(self._own(asked))

    def _find_run(self, asked: "_Asked") -> JsonValue:
        return self._show_run(self._latest(asked)) if asked.id else self._list_runs(asked)

    def _list_runs(self, asked: "_Asked") -> JsonValue:
        latest = {one.run.id: one for one in self.records.values() if one.run.owner == asked.agent}
        shown = [self._show_run(one) for one in reversed(latest.values())]
        wanted = asked.query.get("status")
        return {"runs": [one for one in shown if wanted in (None, one["status"])], "next_skip": None}

    def _show_run(self, record: SuspensionRecord) -> JsonObject:
        end = record.end
        return {
            **show_dates({"created_at_ms": record.run.started_at_ms, "updated_at_ms": record.updated_at_ms}),
            **record.run.model_dump(mode="json", include={"id", "agent", "owner"}),
            "claimed_title": record.run.title,
            "status": str(record.run_status),
            "suspension_id": record.id,
            "result": end.result if end else None,
            "error": end.error if end else None,
        }

    def _cancel(self, asked: "_Asked") -> JsonValue:
        by = Actor(id=asked.agent, kind=ActorKind.AGENT)
        self.save(cancel(self._latest(asked), by, asked.body.get("reason"), self.clock.now_ms))
        return self._find_run(asked)

    def _decide(self, asked: "_Asked") -> JsonValue:
        record = self._own(asked)
        item = find_item(record, asked.item_id)
        given = {name: value for name, value in asked.body.items() if name not in ("action", "digest")}
        if asked.body.get("digest") != item.digest:
            raise InvalidInput("The digest is not that of the item.")
        self.decide(record, item, asked.body["action"], given, asked.agent)
        after = find_item(self._own(asked), asked.item_id)
        outcome = show_part(after.outcome.model_dump(mode="json")) if after.outcome else None
        return {"suspension_id": record.id, "item_id": item.item_id, "status": record.status, "outcome": outcome}

    def _redeem(self, asked: "_Asked") -> JsonValue:
        within_s = asked.body.get("report_within_s", REPORT_WITHIN_S)
        spent = client_execution.client_redeem(self._own(asked), asked.item_id, asked.key, self.clock.now_ms, within_s)
        record = self.save(spent)
        item = find_item(record, asked.item_id)
        return {
            "suspension_id": record.id,
            "item_id": item.item_id,
            "tool": item.tool.name,
            "args": approved_args(item),
            "idempotency_key": client_execution.key_of(record, item),
            "attempt": item.permit.attempt if item.permit else 0,
        }

    def _conclude(self, asked: "_Asked") -> JsonValue:
        told = Report.model_validate({**asked.body, "at_ms": 0})
        now_ms = self.clock.now_ms
        return show_record(
            self.save(client_execution.conclude(self._own(asked), asked.item_id, asked.key, told, now_ms))
        )

    def _mark_in_doubt(self, asked: "_Asked") -> JsonValue:
        record = self._own(asked)
        if record.following_id is None:
            draft = SuspensionRecord(
                id=f"{record.id}-next",
                tenant=record.tenant,
                status=Status.PENDING,
                created_at_ms=0,
                updated_at_ms=0,
                run=record.run,
                resume=record.resume,
                on_deny=record.on_deny,
            )
            record = self.save(client_execution.mark_in_doubt(record, asked.item_id, draft, self.clock.now_ms))
        return show_record(self.records[record.following_id or record.id])

    def _own(self, asked: "_Asked") -> SuspensionRecord:
        record = self.records.get(asked.id)
        if record is None or (asked.agent not in (record.run.owner, self.reviewer.name)):
            raise NotFound(f"There is no suspension {asked.id!r} for this credential.")
        return record

    def _latest(self, asked: "_Asked") -> SuspensionRecord:
        found = [one for one in self.records.values() if one.run.id == asked.id and one.run.owner == asked.agent]
        if not found:
            raise NotFound(f"There is no run {asked.id!r} for this credential.")
        return found[-1]


@dataclass(frozen=True)
class _Asked:
    """One request, taken apart."""

    agent: str
    key: str
    id: str
    item_id: str
    body: Any
    query: Mapping[str, str]


def _refuse(error: SaysoError) -> httpx.Response:
    problem = describe_problem(error)
    return httpx.Response(problem.status, json=problem.document())
