"""Mandates of a desk in memory: propose a plan, read it, end it."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Protocol

from pydantic import Field, JsonValue
from pydantic_core import to_json

from sayso.core.canonical_json import digest_json
from sayso.core.policy.counters.readings import list_mandate_counters
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.permissions import MOST_TOOLS, GrantState, MandateState, Plan, PlannedCalls
from sayso.core.records.suspensions import ResumeSpec, RunRef, Status, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.transitions.deciding import cancel, suspend
from sayso.errors import InvalidInput, NotFound
from sayso.features.permissions.making import draft_from, find_changed, find_confining, name_mandate, name_suspension
from sayso.features.permissions.plans import draft_mandate
from sayso.features.permissions.text import view_mandate
from sayso.testing.records import DeskRecords
from sayso.testing.requests import DefinitionBody, draft_suspension


class MandateCall(Protocol):
    """A request about mandates."""

    @property
    def agent(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def body(self) -> Any: ...
    @property
    def query(self) -> Mapping[str, str]: ...


class _PlannedCallsBody(PlannedCalls):
    definition: DefinitionBody


class _PlanBody(Plan):
    """A plan of a client that runs its calls itself."""

    thread_id: str | None = Field(default=None, min_length=1, max_length=200)
    tools: tuple[_PlannedCallsBody, ...] = Field(min_length=1, max_length=MOST_TOOLS)


class InProcessMandates:
    """The routes of mandates. A plan covers a conversation; for one of a single run use a real desk."""

    def __init__(self, desk: DeskRecords) -> None:
        self._desk = desk

    def propose(self, request: MandateCall) -> JsonValue:
        """Ask the reviewer about a plan; one that only confines the agent is in force at once."""
        body = _PlanBody.model_validate_json(to_json(request.body))
        name = sha256(f"{request.agent} mandate {request.key}".encode()).hexdigest()[:32]
        fingerprint = digest_json(request.body)
        known = self._desk.find_repeated(f"sus_{name}", fingerprint, request.key)
        if known is not None:
            return self._show(known)
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
        return self._show(self._desk.save(begun._replace(mandate=confining)))

    def read(self, request: MandateCall) -> JsonValue:
        """Return a mandate or its plan; with `wait` the reviewer decides first, or the clock advances."""
        self._desk.reviewer.review()
        wait_s = int(request.query.get("wait", "0").rstrip("s"))
        if self._find(request).status is Status.PENDING and wait_s:
            self._desk.clock.advance(wait_s)
            self._desk.tick()
        return self._show(self._find(request))

    def revoke(self, request: MandateCall) -> JsonValue:
        """End a mandate, or withdraw a plan that waits."""
        record, now_ms = self._find(request), self._desk.clock.now_ms
        mandate = self._desk.counters.find_mandate(request.id)
        if mandate is not None and mandate.find_state(now_ms) is GrantState.IN_FORCE:
            update = {"revoked_by": request.agent, "revoked_at_ms": now_ms}
            self._desk.counters.keep_mandate(mandate.model_copy(update=update))
        elif mandate is None and record.status is Status.PENDING:
            by = Actor(id=request.agent, kind=ActorKind.AGENT)
            record = self._desk.save(cancel(record, by, None, now_ms))
        return self._show(record)

    def _find(self, request: MandateCall) -> SuspensionRecord:
        record = self._desk.records.get(name_suspension(request.id))
        of_plan = record is not None and record.items and record.items[0].mandate is not None
        if record is None or not of_plan or record.run.owner != request.agent:
            raise NotFound(f"There is no mandate {request.id!r} for this credential.")
        return record

    def _show(self, record: SuspensionRecord) -> JsonValue:
        """Return a mandate as the API does; of a plan nobody approved, what it would be."""
        now_ms, item = self._desk.clock.now_ms, record.items[0]
        approved = self._desk.counters.find_mandate(name_mandate(record.id))
        assert item.mandate is not None  # noqa: S101  `_find` refuses other items
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
