"""Frozen models for items, their cards, what reviewers do before they decide, and the digest that binds decisions."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field, JsonValue

from sayso.core.calendar import find_deadline_ms
from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.records.base import Immutable, is_empty, is_none
from sayso.core.records.decisions import (
    LONGEST_FORWARD,
    RUNNING,
    Actor,
    Confirmation,
    Decision,
    Erasure,
    Outcome,
    Permit,
    Verdict,
    VoidedDecision,
)
from sayso.core.records.deliveries import CardDelivery, queue_deliveries
from sayso.core.records.envelopes import Offered, RequestedChanges, Revision
from sayso.core.records.judgements import Assessment, Charge, Remembered, place_charges
from sayso.core.records.permissions import Envelope, Learning
from sayso.core.records.previews import Preview, PreviewRequest, describe_previews
from sayso.core.records.proofs import Invitation
from sayso.core.records.terms import RuleTerms, Terms, merge_stages, read_undo_s
from sayso.core.records.undoing import Reversal, UndoableDecision

CLAIM_MS = 15 * 60_000  # how long a claim lasts
LONGEST_TEXT = 2000
MOST_INQUIRIES = 20  # the most inquiries about one item
MOST_FORWARDS = 10  # how often one item can be forwarded


class Claim(Immutable):
    """One reviewer's notice to the others that they handle an item. It keeps nobody from deciding."""

    by: Actor
    at_ms: int
    until_ms: int

    @property
    def shown_until_ms(self) -> int:
        """The end as cards show it: to the minute, so that renewals update them at most once a minute."""
        return self.until_ms // 60_000 * 60_000


class Inquiry(Immutable):
    """A reviewer's question to the requester, and the answer, which is a claim of the requester.

    `left_ms` is the time that was left when the deadline began to wait for the answer; null if it does not wait.
    """

    id: str
    by: Actor
    text: str = Field(max_length=LONGEST_TEXT)
    at_ms: int
    left_ms: int | None = None
    escalated: int = 0
    answer: str | None = Field(default=None, max_length=LONGEST_TEXT)
    answered_at_ms: int | None = None

    @property
    def open(self) -> bool:
        return self.answer is None


class Forward(Immutable):
    """A reviewer's request that somebody else decides; `to` is a reviewer or `group:<name>`. Others may decide, too.

    It belongs to a `stage` of the item. `escalated` is how many escalation steps had joined before it.
    """

    id: str
    by: Actor
    to: str
    note: str = Field(default="", max_length=LONGEST_FORWARD)
    at_ms: int
    stage: int = 0
    escalated: int = 0


def find_claim(claim: Claim | None, now_ms: int) -> Claim | None:
    """Return a claim that has not expired."""
    return claim if claim is not None and now_ms < claim.until_ms else None


def find_open_inquiry(inquiries: tuple[Inquiry, ...]) -> Inquiry | None:
    """Return the inquiry without an answer; there is at most one."""
    return next((inquiry for inquiry in inquiries if inquiry.open), None)


class ItemKind(StrEnum):
    """What an item needs: an approval or a value."""

    APPROVAL = "approval"
    INPUT = "input"


class Answer(StrEnum):
    """A decision that a reviewer may make on an item."""

    APPROVE = "approve"
    EDIT = "edit"
    DENY = "deny"
    VALUE = "value"


class ItemTool(Immutable):
    """The tool call of an item; `definition` is the digest of the tool's definition."""

    name: str
    args: JsonObject
    definition: str
    idempotent: bool = False
    previews: bool = Field(False, exclude_if=is_empty, description="Whether a worker can preview it.")


class Prompt(Immutable):
    """Text shown to reviewers beside the call."""

    title: str | None = Field(default=None, max_length=200)
    body: str | None = Field(default=None, max_length=20_000)
    reason: str | None = Field(default=None, max_length=2000)
    metadata: JsonObject = Field(default_factory=dict)


_EMPTY_PROMPT = Prompt()  # a shared default: pydantic would copy one that holds a dictionary for every item


class PresetOutcome(Immutable):
    """An outcome that exists when its item is created: decided by the policy, or carried over."""

    verdict: Verdict
    by: Actor
    args: JsonObject | None = None
    value: JsonValue = None
    message: str | None = None
    offer: Offered | None = None
    changes: RequestedChanges | None = None
    start_by_ms: int | None = None


class Doubt(Immutable):
    """A call that was started and has no known result."""

    begun_at_ms: int
    holder: str
    attempt: int
    idempotency_key: str
    charges: tuple[Charge, ...] = Field(default=(), description="What it has added to counters of rules.")


class Drill(Immutable):
    """Marks a false call that an admin plants to see whether its reviewer looks. Its permit is void.

    Reviewers see the mark, and the signs of the false call, only after the decision.
    """

    template: str
    signs: tuple[str, ...]
    planted_by: str
    reviewer: str = Field("", exclude_if=is_empty)  # who alone decides it; empty for a drill whose terms name only them


class _ItemFields(Immutable):
    """The fields that an item takes over from its draft."""

    kind: ItemKind = ItemKind.APPROVAL
    call_id: str
    index: int = 0
    tool: ItemTool
    subagent: str | None = Field(default=None, description="The sub-agent that makes the call, or empty for the agent.")
    prompt: Prompt = Field(default_factory=lambda: _EMPTY_PROMPT)
    allowed: tuple[Answer, ...] = (Answer.APPROVE, Answer.EDIT, Answer.DENY)
    choices: tuple[JsonValue, ...] | None = None
    response_schema: JsonObject | None = None
    target_arg: str | None = None
    resembles: tuple[str, ...] = Field(default=(), description="Names in rules that look like the tool's name.")
    judged_at_ms: int | None = Field(default=None, description="The time that the rules saw, if they read the time.")
    computed: JsonObject | None = None  # from the call for the rules, by the words of their conditions
    remembered: tuple[Remembered, ...] = Field(default=(), description="What rules remembered when it was asked.")
    charges: tuple[Charge, ...] = Field(default=(), description="What its call has added to counters of rules.")
    asked: tuple[Charge, ...] = Field((), exclude_if=is_empty)  # what asking about it has added to counters
    assessment: Assessment | None = Field(None, exclude_if=is_empty)  # what the rule's assessor said about the call
    grant_id: str = Field(default="", description="The grant that allowed its call, if any.")
    learning: Learning | None = Field(None, exclude_if=is_empty)  # what its decision teaches a rule that learns
    doubt: Doubt | None = None
    fixed: bool = Field(default=False, description="Whether its deadlines were promised to the client and never move.")
    secret_number: str = Field(default="", description="What the requester sees and a reviewer types to approve.")
    drawn: str = Field(default="", exclude_if=is_empty, description="The HMAC that drew it for a second look; hex.")
    confirmation: Confirmation | None = Field(None, exclude_if=is_empty)  # of the acting user
    drill: Drill | None = Field(None, exclude_if=is_empty)  # marks a false call, whose permit is void
    mandate: Envelope | None = Field(None, exclude_if=is_empty)  # the plan that the item asks about, if any
    # The earlier call whose changes a reviewer had requested, if this is its new version.
    revises: Revision | None = Field(None, exclude_if=is_empty)
    previews: tuple[Preview, ...] = Field((), exclude_if=is_empty)  # of its arguments, and of one edit of them
    reverses: Reversal | None = Field(None, exclude_if=is_empty)  # the call that ran, if it offers to undo one


class ItemDraft(_ItemFields):
    """An item before its terms are resolved. With a preset, no reviewer is asked.

    Its charges are added if the preset lets the call run.
    """

    terms: RuleTerms = RuleTerms()
    rule_id: str | None = None
    rule_version: str = ""
    preset: PresetOutcome | None = None


def assign_numbers(drafts: Sequence[ItemDraft], new_number: Callable[[], str]) -> tuple[ItemDraft, ...]:
    """Return the drafts, each with a number if its terms need one for an approval."""
    return tuple(
        draft.model_copy(update={"secret_number": new_number()})
        if draft.terms.match_number and draft.preset is None and not draft.secret_number
        else draft
        for draft in drafts
    )


class Item(_ItemFields):
    """One thing a person is asked, with its resolved terms and digest."""

    item_id: str
    terms: Terms
    digest: str
    decisions: tuple[Decision, ...] = ()
    voided: tuple[VoidedDecision, ...] = Field((), exclude_if=is_empty)  # decisions that no longer count
    undoable: UndoableDecision | None = Field(None, exclude_if=is_empty)  # what decides it soon, if its author agrees
    outcome: Outcome | None = None
    permit: Permit | None = None
    reminded: int = 0
    escalated: int = 0
    held_ms: int = Field(default=0, description="Frozen time that was added to the deadlines.")
    held_to_ms: int = Field(default=0, description="The moment up to which frozen time was added.")
    seen_by: Actor | None = Field(default=None, description="The first reviewer who saw it, if its fallback approves.")
    seen_at_ms: int | None = None
    deliveries: tuple[CardDelivery, ...] = ()
    claim: Claim | None = None
    inquiries: tuple[Inquiry, ...] = ()
    forwards: tuple[Forward, ...] = Field((), exclude_if=is_empty)
    invitations: tuple[Invitation, ...] = Field((), exclude_if=is_empty)
    grace_ms: int = Field(default=0, description="Frozen time that was added to the latest start of the call.")
    erasure: Erasure | None = Field(None, exclude_if=is_empty)  # who erased its contents, if anybody
    # The digest of the agent's own arguments, where those of the item are a reviewer's.
    requested: str = Field("", exclude_if=is_empty)
    preview_request: PreviewRequest | None = Field(None, exclude_if=is_empty)
    # These arguments, where an earlier stage changed them.
    original: JsonObject | None = Field(None, exclude_if=is_none)

    @property
    def open(self) -> bool:
        return self.outcome is None

    @property
    def current(self) -> tuple[Decision, ...]:
        """The decisions that count for its quorum: those of the current stage."""
        return tuple(decision for decision in self.decisions if decision.stage == self.terms.stage)

    @property
    def reminders(self) -> int:
        """How many reminders its reviewers get: those of its terms until now, and one for each decision that lapsed."""
        return self.reminded + sum(not decision.retracted for decision in self.voided)

    @property
    def deciders(self) -> tuple[str, ...]:
        """The names of those who may decide: of a drill its reviewer alone. Empty for any reviewer."""
        return (self.drill.reviewer,) if self.drill is not None and self.drill.reviewer else self.terms.reviewers

    @property
    def forwarded(self) -> Forward | None:
        """The last forward of an open item; None once its stage is over, or somebody has decided after it."""
        last = self.forwards[-1] if self.open and self.forwards else None
        if last is None or last.stage != self.terms.stage:
            return None
        return None if any(decision.at_ms > last.at_ms for decision in self.decisions) else last

    @property
    def asked_reviewers(self) -> tuple[str, ...]:
        """Those of the reviewers who are asked now: after a forward its recipient, and who joins later."""
        forward = self.forwarded
        if forward is None:
            return self.terms.reviewers
        steps = self.terms.escalate[forward.escalated : self.escalated]
        return tuple(dict.fromkeys((forward.to, *(name for step in steps for name in step.reviewers))))

    def reviewers_of(self, delivery: CardDelivery) -> tuple[str, ...]:
        """Return the reviewers through whom a delivery asks its person: a forward's recipient, or those of its step."""
        forward = self.forwarded
        if forward is not None and delivery.step <= forward.escalated and delivery.forward == len(self.forwards):
            return (forward.to,)
        return self.terms.reviewers_of(delivery.step)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that run with it: its own, and that of a call which it undoes."""
        return (self.tool.name,) if self.reverses is None else (self.tool.name, self.reverses.tool)

    @property
    def is_void(self) -> bool:
        """Whether there is no call to run: the item is a drill, or asks about a plan."""
        return self.drill is not None or self.mandate is not None

    @property
    def start_by_ms(self) -> int:
        return self.outcome.start_by_ms + self.grace_ms if self.outcome is not None else 0


_KEPT = tuple(name for name in RuleTerms.model_fields if name in Terms.model_fields)
_UNRESOLVED = Terms(rule_version="", deadline_at_ms=0)
"""A copy of this needs no validation: the terms of the rule were validated."""


def freeze_terms(terms: RuleTerms, *, rule_id: str | None, rule_version: str, now_ms: int) -> Terms:
    """Return the rule's terms for an item created at `now_ms`."""
    deadline_at_ms, stated = now_ms + terms.timeout_s * 1000, vars(terms)
    if terms.timeout is not None and terms.working_hours is not None:
        counted_ms = find_deadline_ms(terms.timeout, terms.working_hours.working, now_ms)
        deadline_at_ms = deadline_at_ms if counted_ms is None else min(counted_ms, deadline_at_ms)
    resolved: dict[str, object] = {
        "rule_id": rule_id,
        "rule_version": rule_version,
        "deadline_at_ms": deadline_at_ms,
        "extend_until_ms": deadline_at_ms + terms.extend_by_s * 1000 if terms.extend_by_s else 0,
        "undo_s": read_undo_s(terms.undo),
        "remind_at_ms": tuple(now_ms + after_s * 1000 for after_s in terms.remind_after_s),
    }
    if terms.stages:
        resolved |= {"reviewers": terms.stages[0].reviewers, "quorum": terms.stages[0].quorum}
    return _UNRESOLVED.model_copy(update={name: stated[name] for name in _KEPT} | resolved)


class Binding(NamedTuple):
    """The parts of an item's digest that identify its suspension."""

    tenant: str
    run_id: str
    attempt: int
    suspension_id: str


def freeze_item(draft: ItemDraft, item_id: str, binding: Binding, now_ms: int) -> Item:
    """Return the item for a draft: resolve its terms from `now_ms`, compute its digest, and queue its deliveries."""
    stated = draft.terms if draft.kind is ItemKind.APPROVAL else merge_stages(draft.terms)
    terms = freeze_terms(stated, rule_id=draft.rule_id, rule_version=draft.rule_version, now_ms=now_ms)
    fields = {name: getattr(draft, name) for name in _ItemFields.model_fields}
    if not terms.quorum.approve and draft.kind is ItemKind.APPROVAL:
        fields["allowed"] = (Answer.DENY,)  # the acting user alone lets it run
    digest = digest_item(binding, item_id, draft, draft.tool.args, terms)
    asks = draft.preset is None and terms.deadline_at_ms > now_ms
    deliveries = queue_deliveries(terms.channels, list_notified(terms)) if asks and terms.channels else ()
    may_run = draft.preset is not None and draft.preset.verdict in RUNNING
    fields["charges"] = place_charges(draft.charges, now_ms) if may_run else ()
    fields["asked"] = place_charges(draft.asked, now_ms) if draft.preset is None else ()
    return Item(**fields, item_id=item_id, terms=terms, digest=digest, deliveries=deliveries)


def list_notified(terms: Terms, reviewers: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Return who is notified: the acting user, and those of the terms or other `reviewers`; "" is any reviewer."""
    reviewers = terms.reviewers if reviewers is None else reviewers
    if terms.confirm_by is None:
        return reviewers
    others = reviewers or (("",) if terms.quorum.approve else ())
    return tuple(dict.fromkeys((*others, terms.confirm_by)))


def digest_item(binding: Binding, item_id: str, item: _ItemFields, args: JsonObject, terms: Terms) -> str:
    """Return the digest that binds a decision to this call under these terms, with the previews of its effect."""
    stage: JsonObject = {"stage": terms.stage} if terms.stage else {}
    return digest_json(
        {
            **binding._asdict(),
            **stage,
            "item_id": item_id,
            "tool": item.tool.name,
            "definition": item.tool.definition,
            "args": args,
            "target_arg": item.target_arg,
            "rule_version": terms.rule_version,
            "deadline_at_ms": terms.deadline_at_ms,
            "fallback": vars(terms.fallback),
            "quorum": terms.quorum.state(),
            **(describe_previews(item.previews) if item.previews else {}),
        }
    )


def final_args(item: Item, *, edited: JsonObject | None, value: JsonValue) -> JsonObject:
    """Return the arguments to run: as requested, as edited, or with the value in the target argument."""
    if item.kind is ItemKind.INPUT and item.target_arg is not None:
        return {**item.tool.args, item.target_arg: value}
    return dict(item.tool.args) if edited is None else edited
