"""The API of a desk in memory: the operations that clients in poll mode use."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import httpx
from pydantic import Field, JsonValue
from pydantic_core import to_json

from sayso.core.canonical_json import digest_json, parse_json
from sayso.core.clock import new_id, new_number
from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import list_mandate_counters
from sayso.core.policy.external import ExternalCall, describe_calls, evaluate_calls, list_wanted
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind, Report
from sayso.core.records.items import ItemDraft, assign_numbers
from sayso.core.records.permissions import MOST_TOOLS, GrantState, MandateState, Plan, PlannedCalls
from sayso.core.records.suspensions import Change, Progress, ResumeSpec, RunRef, Status, SuspensionRecord
from sayso.core.records.terms import REPORT_WITHIN_S
from sayso.core.records.tools import ToolDefinition
from sayso.core.transitions import client_execution
from sayso.core.transitions.deciding import cancel, find_item, suspend
from sayso.core.transitions.permits import approved_args
from sayso.core.transitions.superseding import find_reason, find_revision, is_superseded, list_changes, supersede
from sayso.errors import InvalidInput, NotFound, Withdrawn
from sayso.features.permissions.making import draft_from, find_changed, find_confining, name_mandate, name_suspension
from sayso.features.permissions.plans import draft_mandate
from sayso.features.permissions.text import view_mandate
from sayso.runner.revalidation import find_ended_grant, judge_approved
from sayso.runner.revalidation import list_wanted as list_wanted_again
from sayso.testing.records import DeskRecords
from sayso.testing.requests import (
    DefinitionBody,
    SuspendBody,
    check_args,
    draft_suspension,
    read_call,
    show_record,
    show_run,
)
from sayso.wire.items import OutcomeView
from sayso.wire.models import moment
from sayso.wire.suspensions import RedeemedItem

_PATHS = re.compile(r"/api/v1/(suspensions|runs|mandates)(?:/([^/]+))?(?:/items/([^/]+))?(?:/([a-z-]+))?")


@dataclass(frozen=True)
class _Request:
    agent: str
    key: str
    id: str
    item_id: str
    body: Any
    query: Mapping[str, str]


class _PlannedCallsBody(PlannedCalls):
    definition: DefinitionBody


class _PlanBody(Plan):
    """A plan of a client that runs its calls itself."""

    thread_id: str | None = Field(default=None, min_length=1, max_length=200)
    tools: tuple[_PlannedCallsBody, ...] = Field(min_length=1, max_length=MOST_TOOLS)


class InProcessApi:
    """The API's routes, applied to the records of a desk in memory."""

    def __init__(self, desk: DeskRecords) -> None:
        self._desk = desk
        self._routes: Mapping[tuple[str, str, str | None], Callable[[_Request], JsonValue]] = {
            ("POST", "suspensions", None): self._suspend,
            ("GET", "suspensions", None): self._find,
            ("POST", "suspensions", "decision"): self._decide,
            ("POST", "suspensions", "redeem"): self._redeem,
            ("POST", "suspensions", "outcome"): self._report,
            ("POST", "suspensions", "in-doubt"): self._mark_in_doubt,
            ("GET", "runs", None): self._find_run,
            ("POST", "runs", "cancel"): self._cancel,
            ("POST", "mandates", None): self._propose_mandate,
            ("GET", "mandates", None): self._read_mandate,
            ("POST", "mandates", "revoke"): self._revoke_mandate,
        }

    def respond(self, request: httpx.Request) -> JsonValue:
        self._desk.tick()
        path = _PATHS.fullmatch(request.url.path)
        agent = request.headers.get("authorization", "").removeprefix("Bearer ")
        body: Any = parse_json(request.content) if request.content else {}
        if path is None:
            raise NotFound("A desk in a test has no such path.")
        resource, id_, item_id, verb = path.groups()
        key = request.headers.get("idempotency-key", "")
        route = self._routes.get((request.method, resource, verb))
        if route is None:
            raise NotFound("A desk in a test does not support this operation. Use a real one.")
        return route(_Request(agent, key, id_ or "", item_id or "", body, request.url.params))

    def _suspend(self, request: _Request) -> JsonValue:
        body = SuspendBody.model_validate_json(to_json(request.body))
        name = sha256(f"{request.agent} {request.key}".encode()).hexdigest()[:32]
        fingerprint = digest_json({name: value for name, value in request.body.items() if name != "again"})
        run_id = f"run_{name}"
        run = RunRef(
            id=run_id,
            agent=request.agent,
            owner=request.agent,
            thread_id=body.thread_id or run_id,
            tags=body.tags,
            title=body.title,
            request_id=fingerprint,
            claimed=body.context,
        )
        calls = [read_call(*call) for call in enumerate(body.calls)]
        thread = (run.owner, run.thread_id)
        resume = ResumeSpec(mode="poll", resumer="poll", coverage=body.coverage)
        draft = draft_suspension(f"sus_{name}", run, resume=resume, on_deny=body.on_deny)
        existing, why = self._find_existing(draft, calls, request.key, again=body.again)
        if existing is not None and why is None:
            return show_record(existing)
        records = [record for record in self._desk.records.values() if record.run.id != run_id]
        earlier = [record for record in records if (record.run.owner, record.run.thread_id) == thread]
        step = max(body.step or 1, 1 + len(earlier))
        items = (item for record in earlier for item in record.items)
        started = sorted(
            (item.permit.redeemed_at_ms, place, item.tool.name) for place, item in enumerate(items) if item.permit
        )
        progress = Progress().with_tools([name for _, _, name in started]) if body.thread_id else None
        policy, now_ms = self._desk.policy, self._desk.clock.now_ms
        described = describe_calls(run, calls, step, progress, now_ms)
        readings = self._desk.counters.read(list_wanted(policy, described), now_ms)
        drafts, judged = evaluate_calls(policy, run, calls, step, readings, progress, described)
        for call, item_draft in zip(calls, drafts, strict=True):
            check_args(call, item_draft)
        drafts = tuple(self._mark(run, *pair) for pair in zip(calls, drafts, strict=True))
        self._desk.definitions |= {call.definition.digest: call.definition for call in calls}
        draft = draft.model_copy(update={"progress": progress, "step": step})
        numbered = assign_numbers(drafts, new_number)
        if existing is not None and why is not None:
            asked = draft.model_copy(update={"id": new_id("sus")})
            self._desk.save(supersede(existing, asked, numbered, judged, why, now_ms))
            return show_record(self._desk.records[asked.id])
        begun = suspend(draft, numbered, now_ms)
        return show_record(self._desk.save(Change(begun.record, judged + begun.events)))

    def _mark(self, run: RunRef, call: ExternalCall, draft: ItemDraft) -> ItemDraft:
        if not call.revises:
            return draft
        record = self._desk.records.get(call.revises.partition("/")[0])
        return draft.model_copy(update={"revises": find_revision(record, call.revises, run, call.call.name)})

    def _find_existing(
        self, draft: SuspensionRecord, calls: Sequence[ExternalCall], key: str, *, again: bool
    ) -> tuple[SuspensionRecord | None, str | None]:
        """Return the suspension to which the key leads, if any, and why its calls are asked again, if they are."""
        record, known = self._desk.records.get(draft.id), self._desk.definitions
        while record is not None and is_superseded(record):
            record = self._desk.records[str(record.following_id)]
        if record is None:
            return None, None
        changed = list_changes(record, draft, [(call.call, call.definition) for call in calls], known, key)
        return record, find_reason(record, changed, again=again, now_ms=self._desk.clock.now_ms)

    def _find(self, request: _Request) -> JsonValue:
        if not request.id:
            pending = dict.fromkeys(record.id for record, _ in self._desk.waiting)
            shown = [show_record(self._desk.records[id_]) for id_ in pending]
            return {"suspensions": shown, "next_skip": None, "unreadable": []}
        self._await(request, self._read)
        return show_record(self._read(request))

    def _await(self, request: _Request, read: Callable[[_Request], SuspensionRecord]) -> None:
        """Let the reviewer decide, or the clock advance by the time that the request waits."""
        self._desk.review()
        wait_s = int(request.query.get("wait", "0").rstrip("s"))
        if read(request).status is Status.PENDING and wait_s:
            self._desk.clock.advance(wait_s)
            self._desk.tick()

    def _find_run(self, request: _Request) -> JsonValue:
        if request.id:
            return show_run(self._read_latest(request))
        latest = {record.run.id: record for record in self._desk.records.values() if record.run.owner == request.agent}
        runs = [show_run(record) for record in reversed(latest.values())]
        status = request.query.get("status")
        return {"runs": [run for run in runs if status in (None, run["status"])], "next_skip": None, "unreadable": []}

    def _cancel(self, request: _Request) -> JsonValue:
        by = Actor(id=request.agent, kind=ActorKind.AGENT)
        record = self._read_latest(request)
        self._desk.save(cancel(record, by, request.body.get("reason"), self._desk.clock.now_ms))
        return self._find_run(request)

    def _decide(self, request: _Request) -> JsonValue:
        record = self._read(request)
        item = find_item(record, request.item_id)
        given = {name: value for name, value in request.body.items() if name not in ("action", "digest")}
        if request.body.get("digest") != item.digest:
            raise InvalidInput("The digest is not that of the item. Read the item again.")
        reviewer = self._desk.reviewer
        by = reviewer.actor if request.agent == reviewer.name else Actor(id=request.agent, kind=ActorKind.AGENT)
        self._desk.decide(record, item, request.body["action"], given, by)
        decided = find_item(self._read(request), request.item_id)
        outcome = OutcomeView.model_validate(decided.outcome).model_dump(mode="json") if decided.outcome else None
        return {"suspension_id": record.id, "item_id": item.item_id, "status": record.status, "outcome": outcome}

    def _redeem(self, request: _Request) -> JsonValue:
        within_s = request.body.get("report_within_s", REPORT_WITHIN_S)
        before, now_ms = self._read(request), self._desk.clock.now_ms
        change = client_execution.client_redeem(before, request.item_id, request.key, now_ms, within_s)
        if change.record is not before:
            item, policy = find_item(before, request.item_id), self._desk.policy
            readings = self._desk.counters.read(list_wanted_again(before, (item,), policy, now_ms), now_ms)
            judged = judge_approved(before, item, Ledger(policy, readings), now_ms)
            if judged.action is Action.DENY:
                raise Withdrawn(f"The rules now deny {item.tool.name}. The call must not start.")
            if item.permit is None and (ended := find_ended_grant(item, judged)) is not None:
                raise Withdrawn(f"{ended} The call must not start. Suspend it again with a new key.")
            counted = item.doubt is not None or item.permit is not None or item.charges
            charges = () if counted else judged.due_charges
            change = client_execution.charge_item(change, request.item_id, charges, now_ms)
        record = self._desk.save(change)
        item = find_item(record, request.item_id)
        assert item.permit is not None  # noqa: S101  client_redeem() has set it
        return RedeemedItem(
            suspension_id=record.id,
            item_id=item.item_id,
            tool=item.tool.name,
            args=approved_args(item),
            idempotency_key=client_execution.key_of(record, item),
            attempt=item.permit.attempt,
            redeemed_at=moment(item.permit.redeemed_at_ms),
            report_by=moment(item.permit.report_by_ms),
        ).model_dump(mode="json")

    def _report(self, request: _Request) -> JsonValue:
        report = Report.model_validate({**request.body, "at_ms": 0})
        now_ms = self._desk.clock.now_ms
        change = client_execution.conclude(self._read(request), request.item_id, request.key, report, now_ms)
        return show_record(self._desk.save(change))

    def _mark_in_doubt(self, request: _Request) -> JsonValue:
        record = self._read(request)
        if record.following_id is None:
            following = draft_suspension(f"{record.id}-next", record.run, resume=record.resume, on_deny=record.on_deny)
            now_ms = self._desk.clock.now_ms
            record = self._desk.save(client_execution.mark_in_doubt(record, request.item_id, following, now_ms))
        return show_record(self._desk.records[record.following_id or record.id])

    def _propose_mandate(self, request: _Request) -> JsonValue:
        """Ask the reviewer about a plan; one that only confines the agent is in force at once."""
        body = _PlanBody.model_validate_json(to_json(request.body))
        name = sha256(f"{request.agent} mandate {request.key}".encode()).hexdigest()[:32]
        fingerprint = digest_json(request.body)
        known = self._desk.find_repeated(f"sus_{name}", fingerprint, request.key)
        if known is not None:
            return self._show_mandate(known)
        run = RunRef(
            id=f"run_{name}",
            agent=request.agent,
            owner=request.agent,
            thread_id=body.thread_id or f"run_{name}",
            title=body.title,
            request_id=fingerprint,
        )
        plan = Plan.model_validate(body.model_dump(exclude={"thread_id": True, "tools": {"__all__": {"definition"}}}))
        definitions: dict[str, ToolDefinition] = {}
        for tool in body.tools:
            definition = ToolDefinition(name=tool.tool, **dict(tool.definition))
            if definitions.setdefault(tool.tool, definition) != definition:
                raise InvalidInput(f"The tool {tool.tool!r} has two definitions; send one.")
        item = draft_mandate(self._desk.policy, run, plan, definitions)
        draft = draft_suspension(f"sus_{name}", run, step=1, resume=ResumeSpec(mode="poll"))
        begun = suspend(draft, (item,), self._desk.clock.now_ms)
        confining = find_confining(begun.record, self._desk.clock.now_ms)
        return self._show_mandate(self._desk.save(begun._replace(mandate=confining)))

    def _read_mandate(self, request: _Request) -> JsonValue:
        """Return a mandate or its plan; with `wait` the reviewer decides first, or the clock advances."""
        self._await(request, self._find_mandate)
        return self._show_mandate(self._find_mandate(request))

    def _revoke_mandate(self, request: _Request) -> JsonValue:
        """End a mandate, or withdraw a plan that waits."""
        record, now_ms = self._find_mandate(request), self._desk.clock.now_ms
        mandate = self._desk.counters.find_mandate(request.id)
        if mandate is not None and mandate.find_state(now_ms) is GrantState.IN_FORCE:
            update = {"revoked_by": request.agent, "revoked_at_ms": now_ms}
            self._desk.counters.keep_mandate(mandate.model_copy(update=update))
        elif mandate is None and record.status is Status.PENDING:
            by = Actor(id=request.agent, kind=ActorKind.AGENT)
            record = self._desk.save(cancel(record, by, None, now_ms))
        return self._show_mandate(record)

    def _find_mandate(self, request: _Request) -> SuspensionRecord:
        record = self._desk.records.get(name_suspension(request.id))
        of_plan = record is not None and record.items and record.items[0].mandate is not None
        if record is None or not of_plan or record.run.owner != request.agent:
            raise NotFound(f"There is no mandate {request.id!r} for this credential.")
        return record

    def _show_mandate(self, record: SuspensionRecord) -> JsonValue:
        """Return a mandate as the API does; of a plan nobody approved, what it would be."""
        now_ms, item = self._desk.clock.now_ms, record.items[0]
        approved = self._desk.counters.find_mandate(name_mandate(record.id))
        assert item.mandate is not None  # noqa: S101  `_find_mandate` refuses other items
        mandate = approved or draft_from(record, item, item.mandate, 0)
        if approved is not None:
            state = MandateState(approved.find_state(now_ms))
        elif item.outcome is not None:
            state = MandateState.DENIED
        else:
            state = MandateState.PROPOSED if record.status is Status.PENDING else MandateState.WITHDRAWN
        held = self._desk.counters.read(list_mandate_counters(mandate), now_ms)
        total = held[mandate.sum_counter].total if mandate.sum_counter in held else 0
        void = find_changed(self._desk.policy, mandate.envelope) is not None
        calls = held[mandate.count_counter].total
        shown: JsonValue = view_mandate(mandate, state, void=void, calls=calls, total=total).model_dump(mode="json")
        return shown

    def _read(self, request: _Request) -> SuspensionRecord:
        record = self._desk.records.get(request.id)
        if record is None or request.agent not in (record.run.owner, self._desk.reviewer.name):
            raise NotFound(f"There is no suspension {request.id!r} for this credential.")
        return record

    def _read_latest(self, request: _Request) -> SuspensionRecord:
        of_run = [record for record in self._desk.records.values() if record.run.id == request.id]
        own = [record for record in of_run if record.run.owner == request.agent]
        if not own:
            raise NotFound(f"There is no run {request.id!r} for this credential.")
        return own[-1]
