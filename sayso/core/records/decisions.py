"""Frozen models for decisions, outcomes, permits and the actors behind them."""

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable, is_empty
from sayso.core.records.envelopes import ChangeRequest, CounterOffer, GrantRequest, Offered, RequestedChanges
from sayso.core.records.proofs import OUTSIDER_PREFIX, Invited, Proof, SignedDecision
from sayso.core.records.terms import group_of

DIGEST_PATTERN = "^[0-9a-f]{64}$"
LONGEST_FORWARD = 500  # characters of the note beside a forward


class ActorKind(StrEnum):
    """A person, an agent's credential, or a part of Sayso."""

    HUMAN = "human"
    AGENT = "agent"
    POLICY = "policy"
    TIMEOUT = "timeout"
    WORKER = "worker"


KeyKind = Literal["agent", "reviewer", "provisioner", "directory"]
"""An agent starts and reads its own runs; a reviewer decides as that person; a provisioner manages instances of the
Agent Approval Protocol; a directory keeps people and groups over SCIM."""

KeyScope = Literal["ask", "run", "read", "webhooks", "monitor"]
"""What an agent's key may do: send calls for approval, start runs, only read, manage webhooks, and read diagnostics and
metrics, which it may only with this scope."""


class Actor(Immutable):
    """The author of a change, and the channel it came by."""

    id: str
    kind: ActorKind
    channel: str = "api"
    groups: tuple[str, ...] = Field(
        default=(), exclude_if=is_empty, description="The groups that allowed this reviewer to decide, if any."
    )
    for_person: str = Field(
        default="",
        exclude_if=is_empty,
        description="The absent reviewer for whom this one decided; the groups are then those of the absent one.",
    )
    counts_as: str = Field(
        default="",
        exclude_if=is_empty,
        description="Who made or reset the credential that decided, so that the decision counts as theirs, too.",
    )

    @property
    def human(self) -> str:
        """The person whose decision this is for a quorum: each counts once, by whichever credential."""
        return self.counts_as or self.id


def list_filled(names: Sequence[str], people: Collection[Actor]) -> list[str]:
    """Return the names of reviewers for each of which a different one of these people stands, as many as possible."""
    filled = fill_places([[person.id for person in people if _stands_for(person, name)] for name in names])
    return [name for place, name in enumerate(names) if place in filled]


def fill_places(places: Sequence[Iterable[str]]) -> set[int]:
    """Return the places that different people can fill, as many as possible; each place has the people who can."""
    seats: dict[str, int] = {}

    def seat(place: int, tried: set[str]) -> bool:
        for person in places[place]:
            if person not in tried:
                tried.add(person)
                if person not in seats or seat(seats[person], tried):
                    seats[person] = place
                    return True
        return False

    return {place for place in range(len(places)) if seat(place, set())}


def _stands_for(by: Actor, name: str) -> bool:
    group = group_of(name)
    return name in (by.id, by.for_person) if group is None else group in by.groups


class Limit(Immutable):
    """The items of a role: patterns of tools and agents, and groups that are asked. An empty field limits nothing."""

    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def covers(self, tool: str, agent: str, reviewers: Sequence[str]) -> bool:
        """Return whether an item of this tool, agent and reviewers is within the limit."""
        asked = not self.groups or any(group_of(name) in self.groups for name in reviewers)
        return asked and _fits(self.tools, tool) and _fits(self.agents, agent)


def _fits(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


Limits = tuple[Limit, ...] | None
"""The limits of which one must cover an item. None covers every item, an empty tuple none."""


def is_covered(limits: Limits, tool: str, agent: str, reviewers: Sequence[str]) -> bool:
    """Return whether limits cover an item."""
    return limits is None or any(limit.covers(tool, agent, reviewers) for limit in limits)


class Represented(Immutable):
    """An absent reviewer for whom another decides. `through` lists the delegates between them, absent too."""

    person: str
    groups: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    decides: Limits = None


class Delegate(Actor):
    """A reviewer with what their roles cover, who may decide for absent ones.

    `made_by` made or reset their credential at `made_at_ms`. Records keep only the `Actor` with what counted.
    """

    represents: tuple[Represented, ...] = ()
    made_by: str = ""
    made_at_ms: int = 0
    decides: Limits = None

    @property
    def is_limited(self) -> bool:
        """Whether they, or those for whom they decide, decide about some items only."""
        return self.decides is not None or any(absent.decides is not None for absent in self.represents)


TIMEOUT = Actor(id="timeout", kind=ActorKind.TIMEOUT, channel="clock")  # the author of decisions made by a fallback
COVERED = Actor(id="coverage", kind=ActorKind.POLICY, channel="desk")
"""The author of outcomes closed because one decision of the suspension is enough."""

_OUR_ACTORS = {"policy", "timeout", "coverage", "headless", "clock", "worker", "provisioner", "desk"}
OUR_NAMES = frozenset({*_OUR_ACTORS, "webhook", "sayso", "system"})
"""Reserved names. A person or agent with one of them could not be distinguished in the audit trail."""

OUR_PREFIXES = ("aap:", "aap/", "aap-scope:", "group:", OUTSIDER_PREFIX)
"""Reserved beginnings of names: the Agent Approval Protocol uses them, and rules name groups with one."""


class Erasure(Immutable):
    """The erasure of recorded contents: by whom, when and why. `seq` is the number of its trail event."""

    by: Actor
    at_ms: int
    reason: str
    seq: int


class DecisionAction(StrEnum):
    """What a decision does with its item."""

    APPROVE = "approve"
    DENY = "deny"
    VALUE = "value"
    FAIL = "fail"


class Shown(Immutable):
    """What the reviewer's page had shown of the arguments when they decided. It is evidence and gives no rights."""

    display_hash: str = Field(description="The version of the display and the SHA-256 of the values as it wrote them.")
    values: int = Field(description="How many values the page had.")
    values_shown: int = Field(description="How many of them were in view to their end.")
    paths: tuple[str, ...] = Field(
        default=(), description="The values that were in view; empty above 20 of them, and for items with secrets."
    )
    look_ms: int = Field(description="From the page's opening to the press, as the browser measured it; at most a day.")


class Decision(Immutable):
    """One decision of a reviewer, or of the timeout, on one item; `sayso.decision/1`.

    `args` are the edited arguments. `args_digest` is the digest of the item as the reviewer saw it. `shown` is None
    where it was not measured. `code_used` says that a code of the reviewer's app was verified and used for it.
    """

    id: str
    suspension_id: str
    suspension_version: int
    item_id: str
    action: DecisionAction
    args: JsonObject | None = None
    value: JsonValue = None
    message: str | None = Field(default=None, max_length=2000)
    args_digest: str
    number: str | None = None
    shown: Shown | None = None
    proof: Proof | None = Field(default=None, exclude_if=is_empty)
    code_used: bool = Field(default=False, exclude_if=is_empty)
    by: Actor
    at_ms: int
    idempotency_key: str | None = None
    grant_id: str = Field(default="", exclude_if=is_empty, description="What the decision also granted, if anything.")
    offer: Offered | None = Field(None, exclude_if=is_empty)  # the call that the denial offers instead, if any
    suspends: tuple[str, ...] = Field((), exclude_if=is_empty)  # the learned grants that the denial suspends
    changes: RequestedChanges | None = Field(None, exclude_if=is_empty)  # what the denial asks the agent to change
    stage: int = Field(default=0, exclude_if=is_empty, description="The stage of the item that it counts for, from 0.")
    invited: Invited | None = Field(default=None, exclude_if=is_empty)  # of somebody outside the desk


class VoidedDecision(Immutable):
    """A decision that no longer counts: retracted, of somebody who was deactivated, or of another preview."""

    id: str
    action: DecisionAction
    by: Actor
    at_ms: int
    voided_at_ms: int
    retracted: bool = Field(default=False, exclude_if=is_empty, description="Whether its author took it back.")
    outdated: bool = Field(default=False, exclude_if=is_empty, description="Whether a new preview voided it.")


class Confirmation(Immutable):
    """What the acting user said of their call: it runs with exactly these arguments, or not. It is no vote."""

    id: str
    confirmed: bool
    by: Actor
    at_ms: int
    digest: str = Field(description="The digest of the call as they saw it.")
    args_digest: str = Field(description="The SHA-256 of the arguments that they saw.")
    message: str | None = Field(default=None, max_length=2000)


class ConfirmRequest(Immutable):
    """What the acting user says of their call. One with another digest than `to_confirm` has is refused."""

    action: Literal["confirm", "decline"]
    digest: str = Field(pattern=DIGEST_PATTERN, description="`to_confirm.digest` of the item.")
    message: str | None = Field(default=None, max_length=2000, description="Why you decline; the agent sees it.")


class ForwardRequest(Immutable):
    """Who else is asked to decide an item. One with another digest than the item's is refused."""

    to: str = Field(min_length=1, max_length=100, description="A reviewer, or a group as group:NAME.")
    digest: str = Field(pattern=DIGEST_PATTERN, description="The digest of the item as you saw it.")
    note: str = Field(default="", max_length=LONGEST_FORWARD, description="Why; the agent does not see it.")


class EarlierDenial(Immutable):
    """A person's denial of a call, with the run and thread in which the agent requested it."""

    by: str
    at_ms: int
    message: str = ""
    suspension_id: str = ""
    item_id: str = ""
    run_id: str
    thread_id: str | None = None
    agent: str = ""

    @property
    def place(self) -> tuple[str, str]:
        return self.suspension_id, self.item_id


class Verdict(StrEnum):
    """How an item ended."""

    APPROVED = "approved"
    DENIED = "denied"
    ANSWERED = "answered"
    FAILED = "failed"


RUNNING = (Verdict.APPROVED, Verdict.ANSWERED)  # the verdicts that let a call run


class Outcome(Immutable):
    """The final state of an item. `args` are the arguments to run where they differ from the item's own."""

    verdict: Verdict
    args: JsonObject | None = None
    value: JsonValue = None
    message: str | None = None
    by: Actor
    at_ms: int
    start_by_ms: int
    digest: str
    # The call that passes once instead of this denied one, if any.
    offer: Offered | None = Field(None, exclude_if=is_empty)
    changes: RequestedChanges | None = Field(None, exclude_if=is_empty)  # what the denial asks the agent to change

    @property
    def may_run(self) -> bool:
        return self.verdict in RUNNING

    @property
    def refuses(self) -> bool:
        """Whether the call is not wanted; of a call to be changed, the agent makes a new version."""
        return not self.may_run and self.changes is None


class Report(Immutable):
    """The result of a call that the client ran. `error` is the failure, or a note."""

    success: bool
    output: JsonValue = None
    error: str | None = Field(default=None, max_length=4000)
    at_ms: int


class Permit(Immutable):
    """The redeemed right to run one call.

    A worker's permit gets `ended_at_ms` and `success` with the result; a client's expects a `report` by `report_by_ms`.
    """

    redeemed_at_ms: int
    attempt: int
    holder: str
    ended_at_ms: int | None = None
    success: bool | None = None
    report_by_ms: int = 0
    report: Report | None = None


class DecisionRequest(Immutable):
    """A reviewer's decision as every channel sends it. One with another digest than the item's is refused."""

    action: Literal["approve", "deny", "value"]
    digest: str = Field(pattern=DIGEST_PATTERN, description="The digest of the item as you saw it.")
    args: JsonObject | None = Field(default=None, description="Edited arguments, whole; only with approve.")
    value: JsonValue = Field(default=None, description="The value; only with the action value.")
    message: str | None = Field(default=None, max_length=2000, description="A reason; the agent sees it.")
    number: str | None = Field(
        default=None,
        pattern="^[0-9]{2}$",
        description="The two digits that the requester sees; to approve an item whose terms have `match_number`.",
    )
    signed: SignedDecision | None = Field(
        default=None,
        exclude_if=is_empty,
        description="What the reviewer's passkey signed on the item's page, where `terms.step_up` asks for it.",
    )
    code: str | None = Field(
        default=None,
        exclude_if=is_empty,
        pattern="^[0-9]{6}$",
        description="The six digits that the reviewer's authenticator app shows; with the `step_up` code.",
    )
    grant: GrantRequest | None = Field(
        default=None,
        exclude_if=is_empty,
        description="With approve: also let like calls run without asking, as far as the rule allows it.",
    )
    offer: CounterOffer | None = Field(
        default=None,
        exclude_if=is_empty,
        description="With deny: a call within these limits passes once without asking, within a day.",
    )
    changes: ChangeRequest | None = Field(
        default=None,
        exclude_if=is_empty,
        description="With deny: ask the agent for another version of the call; `message` says what to change.",
    )

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.args is not None and self.action != "approve":
            raise ValueError("args are accepted only with approve; omit them, or approve")
        if self.grant is not None and self.action != "approve":
            raise ValueError("grant is accepted only with approve; omit it, or approve")
        if self.offer is not None and self.action != "deny":
            raise ValueError("offer is accepted only with deny; omit it, or deny")
        if self.changes is not None and (self.action != "deny" or not (self.message or "").strip() or self.offer):
            raise ValueError("changes need the action deny and a message that says what to change, and no offer")
        if self.value is not None and self.action != "value":
            raise ValueError("value is accepted only with the action value; omit it, or choose value")
        if self.action == "value" and "value" not in self.model_fields_set:
            raise ValueError("the action value needs a value; add it as value")
        return self
