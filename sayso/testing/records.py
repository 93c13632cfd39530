"""The records of a desk in memory, its clock, and its reviewer."""

import fnmatch
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.charging import CounterBook
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import describe_item, judge_final
from sayso.core.policy.files.packages import read_policy
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind, Decision, DecisionAction, DecisionRequest
from sayso.core.records.events import Event
from sayso.core.records.items import Item, final_args
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.transitions import client_execution
from sayso.core.transitions.closing import mask_contents
from sayso.core.transitions.deadlines import keep_time
from sayso.core.transitions.deciding import ask_again, find_item
from sayso.core.transitions.decision_checks import request_changes
from sayso.errors import IdempotencyConflict, InvalidInput
from sayso.features.permissions.making import decide_with_grant
from sayso.testing.proofs import make_proof
from sayso.testing.requests import check_outline, describe_misfit


@dataclass
class ManualClock:
    """A clock that moves only when it is advanced. It begins at 2023-11-14 22:13:20 UTC, unless `now_ms` is given."""

    now_ms: int = 1_700_000_000_000

    @classmethod
    def at(cls, moment: datetime) -> Self:
        """Return a clock that begins at this moment, which has a time zone."""
        if moment.tzinfo is None:
            raise InvalidInput(f"{moment.isoformat()} has no time zone. Give one, such as timezone.utc.")
        return cls(round(moment.timestamp() * 1000))

    def advance(self, s: float) -> None:
        """Move the clock forward by `s` seconds."""
        self.now_ms += round(s * 1000)


@dataclass
class _Instruction:
    tools: str
    action: str
    given: JsonObject
    used: bool = False


class FakeReviewer:
    """A reviewer that follows instructions given in advance, or decides at once.

    The latest instruction whose pattern matches the tool's name applies. Other calls wait.
    """

    def __init__(self, desk: "DeskRecords", name: str) -> None:
        self.name = name
        self.groups: tuple[str, ...] = ()
        """The reviewer's groups, for rules that name `group:NAME`."""

        self._desk = desk
        self._instructions: list[_Instruction] = []

    @property
    def actor(self) -> Actor:
        """The reviewer as the author of decisions."""
        return Actor(id=self.name, kind=ActorKind.HUMAN, groups=self.groups)

    def approves(self, tools: str = "*", args: JsonObject | None = None) -> None:
        """Approve calls of these tools from now on, with other arguments if `args` are given."""
        self._instructions.insert(0, _Instruction(tools, "approve", {"args": args} if args is not None else {}))

    def denies(self, tools: str = "*", message: str | None = None) -> None:
        """Deny calls of these tools from now on."""
        self._instructions.insert(0, _Instruction(tools, "deny", {"message": message}))

    def requests_changes(self, tools: str, message: str, *paths: str) -> None:
        """Request changes of calls of these tools from now on, of the arguments at `paths`, such as `args.amount`."""
        self._instructions.insert(0, _Instruction(tools, "deny", {"message": message, "changes": {"paths": [*paths]}}))

    def answers(self, tools: str, value: JsonValue) -> None:
        """Give this value to calls of these tools that request one, from now on."""
        self._instructions.insert(0, _Instruction(tools, "value", {"value": value}))

    def decide(self, action: str = "approve", place: int = 0, **given: JsonValue) -> None:
        """Decide the open item at this place: `approve` (with `args`), `deny` (`message`) or `value` (`value`)."""
        waiting = self._desk.waiting
        if place >= len(waiting):
            raise InvalidInput(f"There is no open item at place {place}: {len(waiting)} wait.")
        record, item = waiting[place]
        self._desk.decide(record, item, action, given, self.actor)

    def review(self) -> None:
        """Decide all open items that an instruction matches."""
        for record, item in self._desk.waiting:
            name = item.tool.name
            matching = [order for order in self._instructions if fnmatch.fnmatchcase(name, order.tools)]
            if matching and not any(decision.by.id == self.name for decision in item.decisions):
                matching[0].used = True
                self._desk.decide(record, item, matching[0].action, matching[0].given, self.actor)

    def list_unused(self) -> list[str]:
        """Return each instruction that no call has matched, such as `approve refund*`."""
        return [f"{order.action} {order.tools}" for order in reversed(self._instructions) if not order.used]


class DeskRecords:
    """What a desk in memory holds, and every change of it."""

    def __init__(self, policy: Policy | Path | str | None = None, clock: ManualClock | None = None) -> None:
        given = policy if policy is not None else Policy(default=Action.REQUEST_APPROVAL)
        self.policy = given if isinstance(given, Policy) else read_policy(given)
        self.clock = clock or ManualClock()
        self.records: dict[str, SuspensionRecord] = {}
        self.trails: dict[str, list[Event]] = {}
        self.definitions: dict[str, ToolDefinition] = {}
        self.counters = CounterBook()
        self.reviewer = FakeReviewer(self, "reviewer")
        self.reviewers = [self.reviewer]

    def add_reviewer(self, name: str, *groups: str) -> FakeReviewer:
        """Return one more reviewer, for rules with a quorum or with groups."""
        if any(reviewer.name == name for reviewer in self.reviewers):
            raise InvalidInput(f"There is a reviewer {name!r} already. Choose another name.")
        reviewer = FakeReviewer(self, name)
        reviewer.groups = groups
        self.reviewers.append(reviewer)
        return reviewer

    def review(self) -> None:
        """Let every reviewer decide what their instructions match."""
        for reviewer in self.reviewers:
            reviewer.review()

    def check_used(self, *rules: str) -> None:
        """Raise `AssertionError` for an instruction that no call has matched, and for a rule of these that judged none.

        A desk that is used as `with InProcessDesk() as desk:` does so for instructions at the end of its block.
        """
        called = sorted({item.tool.name for record in self.records.values() for item in record.items})
        seen = f"The desk was asked about {', '.join(called)}." if called else "The desk was asked about no call."
        for reviewer in self.reviewers:
            if unused := reviewer.list_unused():
                raise AssertionError(f"{reviewer.name}'s instruction to {unused[0]} matched no call. {seen}")
        known = {rule.rule_id for rule in self.policy.rules}
        judged = {item.terms.rule_id for record in self.records.values() for item in record.items}
        for rule in rules:
            if rule not in known:
                raise AssertionError(f"There is no rule {rule!r}. The rules are {', '.join(sorted(known)) or 'none'}.")
            if rule not in judged:
                raise AssertionError(f"The rule {rule!r} decided about no call. {seen}")

    @property
    def waiting(self) -> list[tuple[SuspensionRecord, Item]]:
        """The open items, oldest first."""
        pending = [record for record in self.records.values() if record.status is Status.PENDING]
        return [(record, item) for record in pending for item in record.items if item.open]

    def decide(self, record: SuspensionRecord, item: Item, action: str, given: JsonObject, by: Actor) -> None:
        """Decide an item. Raises the errors of a real desk."""
        record = self.records[record.id]  # a decision on another item may have changed it
        current = find_item(record, item.item_id)
        no_undo = current.terms.model_copy(update={"undo_s": 0})  # a test does not wait for a decision to take effect
        record = record.with_item(current.model_copy(update={"terms": no_undo}))
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
            proof=make_proof(item.digest, action, request.args, request.value) if item.terms.step_up else None,
            by=by,
            at_ms=self.clock.now_ms,
            changes=request_changes(item, request),
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
