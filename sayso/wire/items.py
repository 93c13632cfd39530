"""Views of items, their decisions, outcomes and permits, and of comments and files on them."""

import base64
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, DecisionAction, Shown, Verdict
from sayso.core.records.deliveries import DeliveryState
from sayso.core.records.envelopes import ConstraintKind, RequestedChanges, Revision
from sayso.core.records.items import Answer, ItemKind, ItemTool, Prompt
from sayso.core.records.judgements import Level, Remembered
from sayso.core.records.proofs import Invited, Proof
from sayso.core.transitions.states import ItemState
from sayso.wire.models import Later, Timestamp, View
from sayso.wire.previews import PreviewRequestView, PreviewView
from sayso.wire.terms import TermsView


def _write_remembered(value: object) -> object:
    if not isinstance(value, Remembered):
        return value
    from sayso.core.sentences.rules import describe_remembered  # clients do not need the rules

    return describe_remembered(value)


_Sentence = Annotated[str, BeforeValidator(_write_remembered)]


class DecisionView(View):
    """A decision on an item."""

    id: str
    item_id: str
    action: DecisionAction
    args: JsonObject | None
    value: JsonValue
    message: str | None
    args_digest: str = Field(description="The digest of the item when the reviewer decided.")
    shown: Shown | None = Field(
        description="What the reviewer's page had shown; null if not measured, as for decisions over API and channels."
    )
    proof: Later[Proof | None] = Field(description="What the reviewer's passkey signed; null where none was needed.")
    code_used: Later[bool] = Field(description="Whether a code of the reviewer's authenticator app was used for it.")
    by: Actor
    at: Timestamp = Field(validation_alias="at_ms")
    grant_id: Later[str] = Field(description="The grant that the decision made; empty without one.")
    changes: Later[RequestedChanges | None] = Field(description="What a denial asks the agent to change, if anything.")
    stage: Later[int] = Field(description="The stage that it counts for, from 0.")
    invited: Later[Invited | None] = Field(
        description="Of somebody outside: the address, who invited it, and what has proven it; null for reviewers."
    )


class UndoableView(View):
    """A decision that takes effect at `until`; its author can undo it until then."""

    id: str
    action: DecisionAction
    by: Actor
    until: Timestamp = Field(validation_alias="until_ms")


class ConfirmationView(View):
    """What the acting user said of the call."""

    confirmed: bool = Field(description="Whether they confirmed it; false if they declined it.")
    by: Actor
    at: Timestamp = Field(validation_alias="at_ms")
    digest: str = Field(description="The digest of the call as they saw it.")
    message: str | None


class ToConfirmView(View):
    """The call that the acting user confirms: as approved last, else as requested."""

    digest: str = Field(description="Send it with the confirmation.")
    args: JsonObject


class VoidedView(View):
    """A decision that no longer counts: retracted, of somebody who was deactivated, or of another preview."""

    id: str
    action: DecisionAction
    by: Actor
    at: Timestamp = Field(validation_alias="at_ms")
    voided_at: Timestamp = Field(validation_alias="voided_at_ms")
    retracted: Later[bool] = Field(description="Whether its author took it back; false for a deactivated author.")
    outdated: Later[bool] = Field(description="Whether a new preview voided it: its author saw another one.")


class AssessmentView(View):
    """What an assessor outside Sayso said about the call. It can add scrutiny, and never decides."""

    assessor: str
    level: Level
    score: float | None
    reason: str
    fault: str = Field(description="Why there is no usable answer, so that the call counts as high; or empty.")


class ConstraintView(View):
    """A limit on one argument. The value of `at_most` is in millionths."""

    path: str
    kind: ConstraintKind
    value: JsonValue


class OfferView(View):
    """The call that a denial offers: within the constraints and otherwise the same, it runs once without asking."""

    grant_id: str
    until: Timestamp = Field(validation_alias="until_ms")
    constraints: tuple[ConstraintView, ...]
    text: str


class OutcomeView(View):
    """The outcome of an item."""

    verdict: Verdict
    args: JsonObject | None = Field(description="The arguments of the call as it runs; null if they are unchanged.")
    value: JsonValue
    message: str | None
    by: Actor
    at: Timestamp = Field(validation_alias="at_ms")
    start_by: Timestamp = Field(validation_alias="start_by_ms", description="The call does not start after this time.")
    digest: str = Field(description="The digest of the call as it runs.")
    offer: OfferView | None = Field(description="The call that the denial offers instead; null without an offer.")
    changes: Later[RequestedChanges | None] = Field(
        description="What to change before you ask again, as `message` says; null for a call that is not wanted."
    )

    @property
    def may_run(self) -> bool:
        return self.verdict in ("approved", "answered")


class ReportView(View):
    """The result of a call, as its owner reported it."""

    success: bool
    output: JsonValue
    error: str | None
    at: Timestamp = Field(validation_alias="at_ms")


class PermitView(View):
    """The redeemed permit to run a call."""

    redeemed_at: Timestamp = Field(validation_alias="redeemed_at_ms")
    attempt: int
    holder: str
    ended_at: Timestamp | None = Field(
        validation_alias="ended_at_ms",
        description="When the result was saved; null while the call runs or is in doubt.",
    )
    success: bool | None = Field(description="Whether the call succeeded.")
    report: ReportView | None = Field(description="The owner's report; only for calls that no worker runs.")


class ReversalView(View):
    """The call that ran at once under a veto, and that the item offers to undo."""

    run_id: str
    suspension_id: str
    tool: str
    call_id: str
    at: Timestamp = Field(validation_alias="at_ms", description="When it had run.")


class DoubtView(View):
    """A call that started and may have run: its result is unknown."""

    begun_at: Timestamp = Field(validation_alias="begun_at_ms")
    attempt: int
    holder: str
    idempotency_key: str = Field(description="The key that the tool received; other systems may know the call by it.")


class DeliveryView(View):
    """The delivery of the item's card over one channel to one person, group or shared destination."""

    channel: str = Field(description="The channel's name in the channels file.")
    person: str = Field(description="A reviewer or `group:<name>`; empty for the channel's own destination.")
    state: DeliveryState = Field(
        description="`sent`: the provider accepted the card. `seen`: the person opened it. `failed`: see `reason`."
    )
    step: int = Field(description="The escalation step that added the person; 0 for the rule's reviewers.")
    outcome: bool = Field(description="Whether it notifies the requester of the outcome, after the item closed.")
    reason: str | None = Field(description="Why the last attempt failed; null after a success.")
    next_try_at: Timestamp | None = Field(
        validation_alias="next_try_at_ms", description="When the next attempt is due; null if none is planned."
    )
    sent_at: Timestamp | None = Field(validation_alias="sent_at_ms")
    seen_at: Timestamp | None = Field(validation_alias="seen_at_ms")


class ClaimView(View):
    """A reviewer's notice that they handle the item. Others may still decide."""

    by: Actor
    at: Timestamp = Field(validation_alias="at_ms")
    until: Timestamp = Field(validation_alias="until_ms", description="When the claim expires.")


class ForwardView(View):
    """A reviewer's request that somebody else decides. All who may decide still may."""

    by: Actor
    to: str = Field(description="A reviewer, or a group as `group:NAME`.")
    note: str
    at: Timestamp = Field(validation_alias="at_ms")


class InquiryView(View):
    """A reviewer's question to the requester, and the answer."""

    id: str
    by: Actor
    text: str
    at: Timestamp = Field(validation_alias="at_ms")
    answer: str | None = Field(description="A claim of the requester; null until it answers.")
    answered_at: Timestamp | None = Field(validation_alias="answered_at_ms")

    @property
    def open(self) -> bool:
        """Whether the requester has still to answer."""
        return self.answer is None


class EarlierDenialView(View):
    """The last denial of the same call by a person, in the same run or thread, or of the same agent."""

    by: str
    at: Timestamp = Field(validation_alias="at_ms")
    message: str
    suspension_id: str
    item_id: str
    run_id: str
    thread_id: str | None


class HoldView(View):
    """The freeze in force that holds an item."""

    id: str
    scope: str = Field(description="`all`, `agent:<name>`, `tool:<name>`, or `time` after a jump of the clock.")
    reason: str
    by: str
    at: Timestamp = Field(validation_alias="at_ms", description="Since when it is in force.")

    def describe(self, since: str) -> str:
        """Return one line about the freeze; `since` is its time in words."""
        what = "everything" if self.scope == "all" else self.scope
        why = "".join(sign for sign in " ".join(self.reason.split()) if sign.isprintable())
        return f"{what} is frozen by {self.by} since {since}" + (f": {why}" if why else "")


class ItemView(View):
    """One question to reviewers about one call."""

    item_id: str
    kind: ItemKind
    call_id: str
    index: int
    tool: ItemTool
    subagent: str | None = Field(
        description="The sub-agent that makes the call; empty for the agent itself, null if unknown."
    )
    prompt: Prompt
    allowed: tuple[Answer, ...]
    choices: tuple[JsonValue, ...] | None
    response_schema: JsonObject | None
    target_arg: str | None
    terms: TermsView
    original: Later[JsonObject | None] = Field(
        description="The arguments as the agent requested them, where an earlier stage changed them."
    )
    resembles: tuple[str, ...] = Field(
        description="Names in rules that the tool's name resembles; their rules were applied too."
    )
    remembered: Later[tuple[_Sentence, ...]] = Field(
        description="What rules remembered when it was asked, such as `18 of 20 calls in 1 h`."
    )
    computed: JsonObject | None = Field(
        description="What Sayso computed from the call for the rules behind the item, such as the programs of a shell "
        "command; null if they computed nothing. Secrets are masked."
    )
    assessment: AssessmentView | None = Field(
        description="What the assessor of the rule said about the call; null if the rule has none."
    )
    digest: str = Field(description="Identifies what is decided; send it with a decision.")
    decisions: tuple[DecisionView, ...] = Field(description="For agents the deciding one alone, once there is one.")
    voided: Later[tuple[VoidedView, ...]] = Field(description="Decisions that no longer count.")
    undoable: UndoableView | None = Field(
        default=None, description="For people: a decision that its author can still undo; nothing has run."
    )
    confirmation: Later[ConfirmationView | None] = Field(description="What the acting user said of the call.")
    to_confirm: ToConfirmView | None = Field(
        default=None, description="For people: what `terms.confirm_by` has still to confirm, once there is a call."
    )
    doubt: DoubtView | None
    outcome: OutcomeView | None
    permit: PermitView | None
    number: str | None = Field(
        default=None, description="The digits that a reviewer types to approve. Only the requester sees them."
    )
    denied_before: EarlierDenialView | None = Field(
        default=None,
        description="The last denial of the same call; for people who read one suspension, while the item is open.",
    )
    previews: Later[tuple[PreviewView, ...]] = Field(
        description="For people: what the call would do as its tool says, and the same for the last edit."
    )
    reverses: Later[ReversalView | None] = Field(
        description="The call that ran under a veto, and that this item offers to undo; null for any other item."
    )
    preview_request: Later[PreviewRequestView | None] = Field(
        description="For people: the preview that a worker was asked for; null if none is."
    )
    revises: Later[Revision | None] = Field(
        description="The earlier item whose changes a reviewer had requested, if this is its new version."
    )
    freeze: HoldView | None = Field(
        default=None,
        description="The freeze that holds the item now: its call does not start, and its deadline moves at the "
        "unfreeze. Null if nothing holds it.",
    )
    drawn: Later[str] = Field(
        description="For people: the HMAC that drew it for one more approval; empty if it was not drawn."
    )
    state: ItemState = Field(
        default=ItemState.OPEN, description="The worst known state: an approved call that failed is `failed`."
    )
    seen_by: Actor | None = Field(description="Who saw the item first; recorded if its fallback would approve it.")
    seen_at: Timestamp | None = Field(validation_alias="seen_at_ms")
    claim: ClaimView | None = Field(description="The latest claim, which may have expired; null without one.")
    inquiries: Later[tuple[InquiryView, ...]] = Field(description="Questions of reviewers to the requester.")
    forwarded: Later[ForwardView | None] = Field(
        description="For people: who is asked instead of the reviewers; null once somebody has decided, or its stage "
        "is over."
    )
    deliveries: Later[tuple[DeliveryView, ...]] = Field(
        description="Who was notified over which channel; empty if the rule names no channels."
    )


class CommentView(View):
    """A comment on an item."""

    id: str
    suspension_id: str
    item_id: str
    author: str = Field(description="The reviewer who wrote it.")
    text: str
    at: Timestamp = Field(validation_alias="at_ms")


class CommentPage(View):
    """Comments in order, the earliest first."""

    comments: list[CommentView]


class AttachmentView(View):
    """A file attached to an item."""

    id: str
    name: str
    media_type: str = Field(description="What the bytes are; the sender's statement does not count.")
    size: int
    sha256: str
    author: str
    author_kind: Literal["agent", "human"]
    at: Timestamp = Field(validation_alias="at_ms")


class AttachmentPage(View):
    """The files of an item, the earliest first."""

    attachments: list[AttachmentView]


class AttachmentContent(View):
    """A file and its content."""

    attachment: AttachmentView
    content: str = Field(description="The bytes in base64.")

    @property
    def bytes(self) -> bytes:
        return base64.b64decode(self.content)
