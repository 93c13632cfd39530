"""Put a tool call to people: what is asked, of which kind, and with which answers allowed."""

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field, JsonValue

from sayso.canonical_json import JsonObject, digest_json
from sayso.records.base import Immutable
from sayso.records.decisions import Actor, Decision, Outcome, Permit, Verdict
from sayso.records.terms import RuleTerms, Terms, freeze_terms


class ItemKind(StrEnum):
    """An item asks for leave, for a value, or for a result from outside."""

    APPROVAL = "approval"
    INPUT = "input"


class Answer(StrEnum):
    """An answer that a reviewer may give to an item."""

    APPROVE = "approve"
    EDIT = "edit"
    DENY = "deny"
    VALUE = "value"


class ItemTool(Immutable):
    """The call an item is about; `definition` is the digest of the tool's definition."""

    name: str
    args: JsonObject
    definition: str
    idempotent: bool = False


class Prompt(Immutable):
    """What a reviewer reads beside the call itself."""

    title: str | None = Field(default=None, max_length=200)
    body: str | None = Field(default=None, max_length=20_000)
    reason: str | None = Field(default=None, max_length=2000)
    metadata: JsonObject = Field(default_factory=dict)


_NOTHING = Prompt()


def _say_nothing() -> Prompt:
    """What is the default itself would be copied for every item, for it holds a dictionary."""
    return _NOTHING


class PresetOutcome(Immutable):
    """An outcome that stands already when its item is asked: the policy's own word, or one carried over."""

    verdict: Verdict
    by: Actor
    args: JsonObject | None = None
    value: JsonValue = None
    message: str | None = None
    start_by_ms: int | None = None


class Doubt(Immutable):
    """A call that was begun and of which no result is known: when, by whom, and under which key."""

    begun_at_ms: int
    holder: str
    attempt: int
    idempotency_key: str


class ItemDraft(Immutable):
    """What a runner or an agent wants asked, before the desk has frozen its terms. With a preset nobody is asked."""

    kind: ItemKind = ItemKind.APPROVAL
    call_id: str
    index: int
    tool: ItemTool
    subagent: str | None = None
    prompt: Prompt = Field(default_factory=_say_nothing)
    allowed: tuple[Answer, ...] = (Answer.APPROVE, Answer.EDIT, Answer.DENY)
    choices: tuple[JsonValue, ...] | None = None
    response_schema: JsonObject | None = None
    target_arg: str | None = None
    terms: RuleTerms = RuleTerms()
    rule_id: str | None = None
    rule_version: str = ""
    resembles: tuple[str, ...] = ()
    preset: PresetOutcome | None = None
    doubt: Doubt | None = None
    fixed: bool = False


class Item(Immutable):
    """One thing asked in a suspension, with its frozen terms and the digest of what is asked."""

    item_id: str
    kind: ItemKind = ItemKind.APPROVAL
    call_id: str
    index: int = 0
    tool: ItemTool
    subagent: str | None = Field(default=None, description="Who makes the call: a sub-agent, or empty for the agent.")
    prompt: Prompt = Field(default_factory=_say_nothing)
    allowed: tuple[Answer, ...] = (Answer.APPROVE, Answer.EDIT, Answer.DENY)
    choices: tuple[JsonValue, ...] | None = None
    response_schema: JsonObject | None = None
    target_arg: str | None = None
    terms: Terms
    resembles: tuple[str, ...] = Field(default=(), description="Names in rules that the tool's name looks like.")
    digest: str
    decisions: tuple[Decision, ...] = ()
    outcome: Outcome | None = None
    permit: Permit | None = None
    doubt: Doubt | None = None
    reminded: int = 0
    escalated: int = 0
    held_ms: int = Field(default=0, description="How much time freezes took from the reviewers and was made up.")
    held_to_ms: int = Field(default=0, description="Up to when frozen time was made up.")
    fixed: bool = Field(default=False, description="Whether its moments were promised to whoever asked: none moves.")
    seen_by: Actor | None = Field(default=None, description="Who saw it first; noted where its fallback approves.")
    seen_at_ms: int | None = None
    grace_ms: int = Field(default=0, description="How much later than decided the call may start, for it was frozen.")

    @property
    def open(self) -> bool:
        """Whether the item still waits for its outcome."""
        return self.outcome is None

    @property
    def start_by_ms(self) -> int:
        """Until when the call may start; 0 while nobody has decided."""
        return self.outcome.start_by_ms + self.grace_ms if self.outcome is not None else 0


class Binding(NamedTuple):
    """What every item digest of a suspension is bound to, beside the item itself."""

    tenant: str
    run_id: str
    attempt: int
    suspension_id: str


def freeze_item(ask: ItemDraft, item_id: str, binding: Binding, now_ms: int) -> Item:
    """Return the item that asks `ask` from `now_ms` on, its terms frozen and its digest computed."""
    terms = freeze_terms(ask.terms, rule_id=ask.rule_id, rule_version=ask.rule_version, now_ms=now_ms)
    return Item(
        item_id=item_id,
        kind=ask.kind,
        call_id=ask.call_id,
        index=ask.index,
        tool=ask.tool,
        subagent=ask.subagent,
        prompt=ask.prompt,
        allowed=ask.allowed,
        choices=ask.choices,
        response_schema=ask.response_schema,
        target_arg=ask.target_arg,
        terms=terms,
        resembles=ask.resembles,
        doubt=ask.doubt,
        fixed=ask.fixed,
        digest=digest_item(binding, item_id, ask.tool, ask.tool.args, ask.target_arg, terms),
    )


def digest_item(
    binding: Binding, item_id: str, tool: ItemTool, args: JsonObject, target_arg: str | None, terms: Terms
) -> str:
    """Return the digest that binds a decision to exactly this call under exactly these terms."""
    return digest_json(
        {
            **binding._asdict(),
            "item_id": item_id,
            "tool": tool.name,
            "definition": tool.definition,
            "args": args,
            "target_arg": target_arg,
            "rule_version": terms.rule_version,
            "deadline_at_ms": terms.deadline_at_ms,
            "fallback": vars(terms.fallback),
            "quorum": vars(terms.quorum),
        }
    )


def final_args(item: Item, *, edited: JsonObject | None, value: JsonValue) -> JsonObject:
    """Return the arguments that would run: as asked, as edited, or with the value in its target argument."""
    if item.kind is ItemKind.INPUT and item.target_arg is not None:
        return {**item.tool.args, item.target_arg: value}
    return dict(item.tool.args) if edited is None else edited
