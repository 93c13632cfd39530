"""The card of an item, a pure function of the record: what every channel shows, with secrets masked; and digests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import ActorKind, EarlierDenial
from sayso.core.records.items import Answer, Item
from sayso.core.records.previews import find_preview
from sayso.core.records.proofs import StepUp
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.records.undoing import is_offer
from sayso.core.sentences import items, name_reviewers, outcomes
from sayso.core.sentences.deadlines import describe_fallback, write_sentence
from sayso.core.sentences.stages import describe_stages
from sayso.core.text.invisible import write_signs
from sayso.core.text.language import cut
from sayso.core.text.redaction import Redacted, redact
from sayso.core.text.summaries import summarize, write_pretty
from sayso.core.transitions.decision_checks import takes_changes
from sayso.core.transitions.deliveries import card_version, is_live
from sayso.core.transitions.permits import shows_effect
from sayso.core.transitions.superseding import is_superseded
from service.core.operations.masking import collect_secrets

_DEADLINE = "Decide before"
_UNDO_DEADLINE = "Can be undone until"
_UNLESS_UNDONE = "If nobody undoes it"
DEADLINE_LABELS = frozenset({_DEADLINE, _UNDO_DEADLINE, _UNLESS_UNDONE})
"""The labels of facts that say when an item closes, and how an offer to undo a call does. They quote nothing."""

_STEP_UPS: dict[StepUp, tuple[str, str]] = {
    "code": ("Code", "on the item's page, with a code of your authenticator app or with a passkey."),
    "passkey": ("Passkey", "on the item's page, where your passkey signs it."),
}
_EFFECT_CHARS = 300
_LATEST = 3  # how many questions to the requester a card shows, so that every card fits into a message


class Line(NamedTuple):
    """A labelled text of a card."""

    label: str
    text: str


@dataclass(frozen=True)
class Card:
    """An item for people on a channel.

    `facts` were computed by Sayso; `claims` come from the agent and are not checked. `args` are the arguments that will
    run, with secrets masked if `masked`. `live` says whether the item can still be decided, and `closing` how it ended.
    `ended` is `closing` without the reason that a person wrote. `undoable` says that a decision takes effect soon.
    An offer to undo a call names that call in `reverses`, and `tool` and `args` are those of it, with its result.
    `takes_changes` says that a denial may request changes, `takes_questions` that the requester can be asked.
    """

    suspension_id: str
    item_id: str
    version: str
    headline: str
    tool: str
    agent: str
    facts: tuple[Line, ...]
    closing: str
    ended: str
    link: str
    digest: str = ""
    claims: tuple[Line, ...] = ()
    warnings: tuple[str, ...] = ()
    args: JsonObject = field(default_factory=dict)
    masked: bool = False
    answers: tuple[Answer, ...] = ()
    choices: tuple[JsonValue, ...] | None = None
    response_schema: JsonObject | None = None
    target_arg: str | None = None
    decisions: tuple[str, ...] = ()
    live: bool = False
    urgent: bool = False
    undoable: bool = False
    reverses: str = ""
    takes_changes: bool = False
    takes_questions: bool = True

    def for_confirmation(self, person: str) -> "Card":
        """Return the card for the acting user, who confirms the call on its page; without buttons."""
        line = Line("Confirm", f"The agent acts for you, {person}. Confirm this call, or decline it, on its page.")
        return replace(self, headline=cut(f"Confirm: {self.headline}", 120), facts=(line, *self.facts), answers=())

    @property
    def deadline(self) -> str:
        """The deadline as the card's facts state it; empty without one."""
        return next((fact.text for fact in self.facts if fact.label in (_DEADLINE, _UNDO_DEADLINE)), "")

    @property
    def title(self) -> str:
        """What the agent asks, or did: a line without arguments."""
        if not self.reverses:
            return f"{self.agent} asks: {self.tool}"
        return f"{self.agent} ran {self.tool}.{' Undo it?' if self.live else ''}"

    @property
    def masked_note(self) -> str:
        """What a card says that shows a masked value."""
        act = "undo it" if self.reverses else "approve"
        return f"Secret values are masked, so this card cannot {act}. Open the item to decide."

    @property
    def args_title(self) -> tuple[str, str]:
        """What its arguments are: in a few words, and more of it."""
        return ("What ran", "its arguments and its result") if self.reverses else ("Arguments", "exactly what will run")

    @cached_property
    def args_text(self) -> str:
        """The arguments as indented JSON, with signs for invisible characters."""
        return write_signs(write_pretty(self.args))


def build_card(
    record: SuspensionRecord,
    item: Item,
    definition: ToolDefinition | None,
    public_url: str,
    denied: EarlierDenial | None = None,
) -> Card:
    """Return the card of an item, with the last denial of the same call."""
    schema = definition.parameters if definition is not None else None
    outcome = item.outcome
    shown = outcome.args if outcome is not None and outcome.args is not None else item.tool.args
    secrets = collect_secrets([record], {item.tool.definition or "": definition})
    args = secrets.scrub_object(redact(shown, schema, item.terms.secrets).args)

    def write(label: str, text: str) -> Line:
        return Line(label, write_signs(secrets.scrub(text)))

    live = is_live(record, item)
    tool, call = _name_call(item, args)
    offers = is_offer(item)
    return Card(
        suspension_id=record.id,
        item_id=item.item_id,
        digest=item.digest,
        version=card_version(record, item),
        headline=f"Undo {cut(call, 114)}?" if offers else cut(call, 120),
        tool=tool,
        agent=write_signs(record.run.agent),
        facts=tuple(write(label, text) for label, text in _list_facts(record, item) if text),
        claims=tuple(
            write(label, text)
            for label, text in [
                Line("Task", record.run.title),
                Line("Context", write_pretty(record.run.claimed) if record.run.claimed else ""),
                *(Line(f"Answer to {inquiry.by.id}", inquiry.answer or "") for inquiry in item.inquiries[-_LATEST:]),
            ]
            if text
        ),
        warnings=(*_warn_of_denial(record, denied, secrets), *_warn(item, args)),
        args=args,
        masked=args != shown,
        answers=_list_answers(item),
        choices=item.choices,
        response_schema=item.response_schema,
        target_arg=item.target_arg,
        decisions=tuple(write_signs(outcomes.describe_decision(item, decision)) for decision in item.decisions),
        live=live,
        closing="" if live else secrets.scrub(describe_closing(record, item)),
        ended="" if live else describe_end(record, item),
        link=item_link(public_url, record.id, item.item_id),
        urgent=item.terms.urgent,
        undoable=item.undoable is not None,
        reverses=cut(call, 120) if offers else "",
        takes_changes=takes_changes(item),
        takes_questions=item.reverses is None,  # nobody requested an undo
    )


def _name_call(item: Item, args: JsonObject) -> tuple[str, str]:
    """Return the tool and the call in one line; of an offer to undo a call, those of the call that ran."""
    tool, shown = item.tool.name, args
    if is_offer(item) and item.reverses is not None:
        ran = args.get("arguments")
        tool, shown = item.reverses.tool, ran if isinstance(ran, dict) else {}
    leaves = ", ".join(f"{leaf.path}: {leaf.text}" for leaf in summarize(shown).shown)
    return write_signs(tool), write_signs(f"{tool}({leaves})")


def _list_answers(item: Item) -> tuple[Answer, ...]:
    """Return what a card offers. Numbers and codes are typed on the page, passkeys sign there, and it shows effects."""
    on_page = item.terms.match_number or item.terms.step_up or shows_effect(item)
    return tuple(answer for answer in item.allowed if answer is Answer.DENY or not on_page)


def item_link(public_url: str, suspension_id: str, item_id: str) -> str:
    """Return the address of the item's page, which requires a sign-in."""
    return f"{public_url}/items/{suspension_id}/{item_id}"


def describe_closing(record: SuspensionRecord, item: Item) -> str:
    """Return how the item ended, with what its reviewer wrote: a reason, or what to change. Secrets are masked."""
    outcome, label = item.outcome, "Reason"
    typed = outcome.message if outcome is not None else None
    if outcome is not None and outcome.changes is not None:  # its message is the text that the agent gets
        label = "To change"
        typed = next((made.message for made in reversed(item.decisions) if made.changes is not None), typed)
    message = collect_secrets([record]).scrub(typed or "")
    return describe_end(record, item) + (f" {label}: {write_signs(message)}" if message else "")


def describe_end(record: SuspensionRecord, item: Item) -> str:
    """Return how the item ended: who decided, over which channel, and when."""
    outcome = item.outcome
    if outcome is not None and outcome.by.kind is ActorKind.TIMEOUT:
        return f"{write_sentence(outcomes.describe_outcome_when(item), iso_utc)}."
    if outcome is not None:
        return f"{write_signs(outcomes.describe_outcome(item))} over {outcome.by.channel} at {iso_utc(outcome.at_ms)}."
    if record.status is Status.CANCELLED:
        why = "it was asked again as another item" if is_superseded(record) else "the run was cancelled"
        return f"Withdrawn at {iso_utc(record.updated_at_ms)}: {why}. Nothing ran."
    return "This item is closed."


def _list_facts(record: SuspensionRecord, item: Item) -> list[Line]:
    earlier, offers = len(item.inquiries) - _LATEST, is_offer(item)
    return [
        Line("What it would do", _describe_effect(item)),
        Line("Question", item.prompt.title or ""),
        Line("Details", item.prompt.body or ""),
        Line("Reason", item.prompt.reason or ""),
        Line("Agent", record.run.agent + (f", sub-agent {item.subagent}" if item.subagent else "")),
        Line("Requested by", items.list_requesters(record, item)[0]),
        Line("Rule", item.terms.rule_id or "no rule"),
        Line("Reviewers", items.describe_reviewers(record, item)),
        Line("Forwarded by", _describe_forward(item)),
        Line(_UNDO_DEADLINE if offers else _DEADLINE, iso_utc(item.terms.deadline_at_ms)),
        Line(_UNLESS_UNDONE if offers else "If nobody answers", describe_fallback(record, item)),
        Line("Stages", describe_stages(item)),
        Line("Quorum", items.describe_quorum(item)),
        Line("Confirmation", items.describe_confirmation(item)),
        # A card does not change when the claim expires.
        Line(
            "Claimed",
            f"{item.claim.by.id} handles this until {iso_utc(item.claim.shown_until_ms)}"
            if item.claim is not None and is_live(record, item)
            else "",
        ),
        Line("Decided", items.describe_undo(item.undoable) if item.undoable is not None else ""),
        Line("Earlier questions", f"{earlier}, on the item's page" if earlier > 0 else ""),
        *(Line(f"Question of {inquiry.by.id}", inquiry.text) for inquiry in item.inquiries[-_LATEST:]),
        *((_describe_step_up(item, item.terms.step_up),) if item.terms.step_up is not None else ()),
        Line(
            "Number",
            f"{items.describe_number(record, item)}, and type them on its page." if item.terms.match_number else "",
        ),
    ]


def _describe_step_up(item: Item, proof: StepUp) -> Line:
    label, place = _STEP_UPS[proof]
    return Line(label, f"{'Undo it' if is_offer(item) else 'Approve'} {place}")


def _describe_forward(item: Item) -> str:
    """Return who asks whom to decide, and why; empty unless the item is forwarded."""
    forward = item.forwarded
    if forward is None:
        return ""
    return f"{forward.by.id}, to {name_reviewers([forward.to])}" + (f": {forward.note}" if forward.note else "")


def _describe_effect(item: Item) -> str:
    """Return the beginning of a preview, and where all of it stands; empty without one."""
    preview = find_preview(item.previews)
    if preview is None:
        return ""
    content = preview.content if isinstance(preview.content, str) else write_pretty(preview.content)
    said = f"No preview: {preview.error}" if preview.error is not None else content
    return f"{cut(said, _EFFECT_CHARS)} (in full on the item's page, where it is approved)"


def _warn_of_denial(record: SuspensionRecord, denied: EarlierDenial | None, secrets: Redacted) -> Iterator[str]:
    """Yield who denied the same call before, when and why, if anybody did."""
    if denied is not None:
        said = outcomes.describe_earlier_denial(denied, record.run.id, record.run.thread_id)
        why = f": {denied.message}" if denied.message else ""
        yield write_signs(secrets.scrub(f"{write_sentence(said, lambda at_ms: f'at {iso_utc(at_ms)}')}{why}"))


def _warn(item: Item, args: JsonObject) -> Iterator[str]:
    if item.resembles:
        yield items.describe_resemblance(item.resembles)
    yield from items.describe_characters({item.tool.name: args})
    if item.doubt is not None:
        yield "This call may already have run."


FRAME_CHARS = 200  # the room that a message needs for the title and the rest of a digest


class Entry(NamedTuple):
    """One item of a digest."""

    text: str
    link: str


class Digest(NamedTuple):
    """A digest; `rest` says how many items do not fit, and is empty if all do."""

    title: str
    entries: tuple[Entry, ...]
    rest: str


def build_digest(cards: Sequence[Card], most: int, size: Callable[[Entry], int]) -> Digest:
    """Return the digest of open items, the most pressing first: as many as fit into `most` by their `size`."""
    entries = list[Entry]()
    for card in sorted(cards, key=lambda card: card.deadline):
        text = f"{card.agent} asks: {card.headline}, before {card.deadline}"
        if card.reverses:
            text = f"{card.agent} ran {card.reverses}, which can be undone until {card.deadline}"
        entry = Entry(text, card.link)
        most -= size(entry)
        if most < 0:
            break
        entries.append(entry)
    rest = len(cards) - len(entries)
    more = f"And {rest} more, which do not fit here: the inbox lists them." if rest else ""
    return Digest(_count_items(cards), tuple(entries), more)


def _count_items(cards: Sequence[Card]) -> str:
    offers = sum(bool(card.reverses) for card in cards)
    waiting = len(cards) - offers
    wait = "1 item waits for a decision" if waiting == 1 else f"{waiting} items wait for a decision"
    ran = "1 call can be undone" if offers == 1 else f"{offers} calls can be undone"
    return " and ".join([*([wait] if waiting else []), *([ran] if offers else [])])
