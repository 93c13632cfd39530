"""Frozen models for the terms of an item: reviewers, quorum, deadlines and fallback.

A reviewer is a person's name or `group:<name>`. Membership is read when somebody decides. A new item gets `Terms` with
absolute times, so a later change of the rule does not affect it.
"""

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from sayso.core.calendar import TimeWindow, WorkingTime, measure_ms
from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable, is_empty, is_none
from sayso.core.records.judgements import Sample, Veto, drop_veto
from sayso.core.records.proofs import Addresses, StepUp, join_patterns, max_step_up
from sayso.core.text.redaction import PATH_PATTERN

APPROVAL_TIMEOUT_S = 300  # the default timeout of an approval, as in the tool-call lifecycle (seed 003)
CONFIRMED_BY = "who.person"  # what a rule writes as `confirm_by`
LONGEST_WAIT_S = 30 * 86_400  # the limit of every term: nothing waits forever
REPORT_WITHIN_S = 86_400  # the default time for a client to report the result of a call it redeemed


class FallbackAction(StrEnum):
    """What decides at the deadline when no reviewer has."""

    DENY = "deny"
    APPROVE = "approve"
    VALUE = "value"
    ESCALATE = "escalate"
    FAIL = "fail"


class Fallback(Immutable):
    """The decision made at the deadline."""

    action: FallbackAction = FallbackAction.DENY
    value: JsonValue = None
    message: str | None = Field(default=None, max_length=2000)


GROUP_PREFIX = "group:"  # the beginning of a group's name where rules name reviewers


def group_of(reviewer: str) -> str | None:
    """Return the group that a rule names as a reviewer, or None for a person."""
    return reviewer.removeprefix(GROUP_PREFIX) if reviewer.startswith(GROUP_PREFIX) else None


class Quorum(Immutable):
    """How many different reviewers must approve, or deny, to decide an item.

    Among those who approve, a different person must stand for each name of `each_of`. Without `approve`, as many
    must approve as it has names. Nobody needs to approve (0) only what the acting user confirms.
    """

    each_of: tuple[str, ...] = Field(default=(), max_length=20, exclude_if=is_empty)
    approve: int = Field(default_factory=lambda given: max(1, len(given.get("each_of", ()))), ge=0, le=20)
    deny: int = Field(default=1, ge=1, le=20)

    @field_validator("each_of")
    @classmethod
    def _check_names(cls, each_of: tuple[str, ...]) -> tuple[str, ...]:
        if len({*each_of}) < len(each_of):
            raise ValueError("each_of names somebody twice; name each person and group once")
        return each_of

    @field_validator("approve")
    @classmethod
    def _check_enough(cls, approve: int, info: ValidationInfo) -> int:
        if approve < len(info.data.get("each_of", ())):
            raise ValueError(f"each_of needs {len(info.data['each_of'])} people; raise quorum.approve, or leave it out")
        return approve

    def state(self) -> JsonObject:
        """Return the quorum as items' digests bind it."""
        names: JsonObject = {"each_of": [*self.each_of]} if self.each_of else {}
        return {"approve": self.approve, "deny": self.deny} | names


class Stage(Immutable):
    """One of the stages in which an item is approved, each by its own reviewers and with its own quorum."""

    reviewers: tuple[str, ...] = Field(min_length=1)
    quorum: Quorum = Quorum()

    @field_validator("quorum")
    @classmethod
    def _check_approvals(cls, quorum: Quorum, info: ValidationInfo) -> Quorum:
        reviewers = info.data.get("reviewers", ())
        if not quorum.approve:
            raise ValueError("a stage needs an approval; raise quorum.approve")
        check_each_of(quorum, reviewers)
        if reviewers and not may_reach(reviewers, max(quorum.approve, quorum.deny)):
            raise ValueError(f"the quorum exceeds the {len(reviewers)} reviewers of its stage; add some, or lower it")
        return quorum


MOST_STAGES = 5


def check_each_of(quorum: Quorum, reviewers: Collection[str]) -> None:
    """Raise `ValueError` if the quorum needs somebody who is not among the reviewers."""
    if missing := [name for name in quorum.each_of if name not in reviewers]:
        raise ValueError(f"quorum.each_of names {missing[0]}, who is not among the reviewers; add it to `reviewers`")


def may_reach(reviewers: Collection[str], count: int) -> bool:
    """Whether these reviewers may be `count` people. The number of people in a group is unknown here."""
    return len(reviewers) >= count or any(group_of(name) is not None for name in reviewers)


class EscalationStep(Immutable):
    """Reviewers and groups who are added to an item that is still open after `after_s`."""

    after_s: int = Field(ge=1, le=LONGEST_WAIT_S)
    reviewers: tuple[str, ...] = Field(min_length=1)


class Term(NamedTuple):
    """What a field of terms is to the code that treats all of them alike.

    `strictest` returns the value that satisfies those of several rules; without it, `strictest_terms` chooses. Fields
    that say who `decides` stay in erased trails, and with a call that is judged anew. These and those to be `restated`
    are what a rule would state of an item.
    """

    text: str
    strictest: Callable[[Iterable[Any]], Any] | None = None
    decides: bool = False
    restated: bool = False


def _join(values: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in values for name in names))


UNDO_PATTERN = "^([1-9]|[1-5][0-9]|60)s$"


def read_undo_s(undo: str | None) -> int:
    """Return the seconds of `undo`, such as `5s`."""
    return int(undo.removesuffix("s")) if undo is not None else 0


def _max_undo(values: Iterable[str | None]) -> str | None:
    return max(values, key=read_undo_s)


MOST_ROUNDS = 3
"""How often reviewers may request changes of one call, unless its rule says otherwise."""


def _min_rounds(values: Iterable[int | None]) -> int:
    return min(MOST_ROUNDS if rounds is None else rounds for rounds in values)


def _find_first(values: Iterable[str | None]) -> str | None:
    return next(filter(None, values), None)


def _default_quorum(given: dict[str, Any]) -> Quorum:
    named = given.get("reviewers") or given.get("stages")
    return Quorum(approve=0) if given.get("confirm_by") and not named else Quorum()


class RuleTerms(Immutable):
    """Terms as a rule states them, in seconds from the creation of the item.

    The deadline is the earlier of `timeout_s` and `timeout`, which counts the `working_hours`. With `confirm_by` and
    neither reviewers nor a quorum, nobody needs to approve.
    """

    reviewers: Annotated[
        tuple[str, ...],
        Term("Who may decide: names of people, and groups as group:NAME. Any reviewer without it.", decides=True),
    ] = ()
    stages: Annotated[
        tuple[Stage, ...],
        Term("Instead of reviewers and quorum: those of each stage. Each must approve before the next.", decides=True),
    ] = Field(default=(), min_length=2, max_length=MOST_STAGES, exclude_if=is_empty)
    confirm_by: Annotated[
        str | None,
        Term("Who must also confirm the call: who.person, for whom the agent acts.", _find_first, decides=True),
    ] = Field(default=None, exclude_if=is_empty, json_schema_extra={"enum": [CONFIRMED_BY]})
    quorum: Annotated[
        Quorum,
        Term(
            "How many different people must approve, or deny, and of which groups one each must approve.", decides=True
        ),
    ] = Field(default_factory=_default_quorum)
    no_self_approval: Annotated[
        bool,
        Term("Whether the requester cannot decide: the key, its owner, and the person it acts for.", any, decides=True),
    ] = True
    no_maker_approval: Annotated[
        bool, Term("Whether the person who made the requester's key cannot decide, either.", any, decides=True)
    ] = Field(default=False, exclude_if=is_empty)
    timeout_s: Annotated[int, Term("Seconds until the fallback decides; 0 decides at once.")] = Field(
        default=APPROVAL_TIMEOUT_S, ge=0, le=LONGEST_WAIT_S
    )
    working_hours: Annotated[TimeWindow | None, Term("The hours that timeout counts.")] = None
    timeout: Annotated[
        WorkingTime | None,
        Term("Instead of timeout_s: a working time such as `2 working days`. It needs working_hours."),
    ] = None
    extend_by_s: Annotated[int, Term("Seconds by which reviewers may extend the deadline.")] = Field(
        default=0, ge=0, le=LONGEST_WAIT_S
    )
    start_by_s: Annotated[int, Term("Seconds until an approved call must have started.")] = Field(
        default=3600, ge=1, le=LONGEST_WAIT_S
    )
    undo: Annotated[
        str | None,
        Term("The time in which a reviewer can undo a decision before it takes effect, 1s to 60s.", _max_undo),
    ] = Field(default=None, pattern=UNDO_PATTERN, exclude_if=is_empty)
    veto: Annotated[
        Veto | None, Term("For allow: how long people can undo a call that ran at once, such as 10m.", drop_veto)
    ] = Field(default=None, exclude_if=is_empty)
    remind_after_s: Annotated[
        tuple[Annotated[int, Field(ge=1, le=LONGEST_WAIT_S)], ...],
        Term("Seconds after which the reviewers are reminded."),
    ] = ()
    escalate: Annotated[tuple[EscalationStep, ...], Term("Reviewers who join later.", restated=True)] = ()
    unattended_approval: Annotated[
        bool, Term("Must be true beside the fallback approve: the call then runs without a decision.", all)
    ] = False
    match_number: Annotated[
        bool, Term("Whether an approval needs the two digits that the requester sees.", any, restated=True)
    ] = False
    step_up: Annotated[
        StepUp | None,
        Term(
            "What an approval needs beside a session: code, of an app of the reviewer, or passkey, which signs it.",
            max_step_up,
            restated=True,
        ),
    ] = Field(default=None, exclude_if=is_empty)
    deadline_waits: Annotated[
        bool, Term("Whether the deadline waits for answers of the requester, within extend_by_s.", all)
    ] = False
    fallback: Annotated[Fallback, Term("What decides at the deadline.", restated=True)] = Fallback()
    channels: Annotated[tuple[str, ...], Term("Names of channels over which the reviewers are notified.", _join)] = ()
    secrets: Annotated[
        tuple[str, ...], Term("Paths of arguments to mask, such as token, login.password or items[].key.", _join)
    ] = ()
    urgent: Annotated[
        bool, Term("Whether cards are sent at once, also in quiet hours and outside working hours.", any)
    ] = False
    notify_requester: Annotated[bool, Term("Whether the requester is notified of the outcome.", any)] = False
    sample: Annotated[Sample | None, Term("How many calls are drawn by chance for another person.")] = Field(
        default=None, exclude_if=is_empty
    )
    rounds: Annotated[
        int | None,
        Term(f"How often reviewers may request changes of a call; {MOST_ROUNDS} without it.", _min_rounds),
    ] = Field(default=None, ge=0, le=10, exclude_if=is_none)

    outsiders: Annotated[
        Addresses, Term("Mail addresses, or *@DOMAIN, that may be invited to decide.", join_patterns, restated=True)
    ] = Field(default=(), exclude_if=is_empty)

    @field_validator("quorum")
    @classmethod
    def _check_approvals(cls, quorum: Quorum, info: ValidationInfo) -> Quorum:
        if not quorum.approve and not info.data.get("confirm_by"):
            raise ValueError(f"a quorum of 0 needs `confirm_by: {CONFIRMED_BY}`; write it, or raise quorum.approve")
        return quorum

    @model_validator(mode="after")
    def _check_stages(self) -> Self:
        for name in ("reviewers", "quorum") if self.stages else ():
            if name in self.model_fields_set:
                raise ValueError(f"each stage has its own {name}; move {name} into a stage, or remove stages")
        return self

    @property
    def named(self) -> tuple[str, ...]:
        """Everybody whom the terms name to decide, at once, in a stage or later; any reviewer if this is empty."""
        later = (*(stage.reviewers for stage in self.stages), *(step.reviewers for step in self.escalate))
        return tuple(dict.fromkeys(name for names in (self.reviewers, *later) for name in names))

    @field_validator("timeout")
    @classmethod
    def _check_timeout(cls, timeout: str | None, info: ValidationInfo) -> str | None:
        window = info.data.get("working_hours")
        if timeout is None or "working_hours" not in info.data:
            return timeout
        if window is None:
            raise ValueError("a working time needs working_hours beside it; add them, or use timeout_s")
        days = measure_ms(timeout, window.working.hours) / measure_ms("1 working day", window.working.hours)
        if days * 7 / len(window.days) * 86_400 > LONGEST_WAIT_S:
            raise ValueError(f"{timeout} may take over {LONGEST_WAIT_S // 86_400} days; choose fewer")
        return timeout

    @field_validator("step_up")
    @classmethod
    def _check_step_up(cls, step_up: StepUp | None, info: ValidationInfo) -> StepUp | None:
        if step_up is not None and "quorum" in info.data and info.data["quorum"].approve == 0:
            raise ValueError(
                "step_up secures approvals, and confirm_by alone needs none; add reviewers, or remove step_up"
            )
        return step_up

    @field_validator("secrets")
    @classmethod
    def _check_secrets(cls, secrets: tuple[str, ...]) -> tuple[str, ...]:
        for path in secrets:
            if not PATH_PATTERN.fullmatch(path):
                raise ValueError(
                    f"{path!r} is not a path of arguments; write it as token, login.password or items[].key"
                )
        return secrets

    @field_validator("fallback")
    @classmethod
    def _check_fallback(cls, fallback: Fallback, info: ValidationInfo) -> Fallback:
        # Invalid fields are missing from `data`; pydantic reports them itself.
        if fallback.action is FallbackAction.APPROVE and not info.data.get("unattended_approval", True):
            raise ValueError(
                "fallback approve runs the call without a reviewer; "
                "set unattended_approval: true in the same terms, or choose deny"
            )
        if fallback.action is FallbackAction.APPROVE and info.data.get("match_number"):
            raise ValueError("fallback approve types no number; choose deny, or remove match_number")
        if fallback.action in (FallbackAction.APPROVE, FallbackAction.VALUE) and info.data.get("confirm_by"):
            raise ValueError(f"fallback {fallback.action} runs the call unconfirmed; choose deny, or remove confirm_by")
        if fallback.action is FallbackAction.ESCALATE and not info.data.get("escalate", True):
            raise ValueError("fallback escalate needs at least one step under escalate:")
        if fallback.action is FallbackAction.VALUE and "value" not in fallback.model_fields_set:
            raise ValueError("fallback value needs a value; add it as value:")
        return fallback


TERMS = {  # the fields of `RuleTerms`
    name: term for name, field in RuleTerms.model_fields.items() for term in field.metadata if isinstance(term, Term)
}

DECIDING = tuple(name for name, term in TERMS.items() if term.decides)  # the fields that say who may decide
REFUSING = {name for name in DECIDING if TERMS[name].strictest is any}  # those of them that refuse somebody


class Terms(Immutable):
    """The resolved terms of one item. Without reviewers, any reviewer may decide.

    With `stages`, reviewers and quorum are those of the current `stage`, counted from 0.
    """

    rule_id: str | None = None
    rule_version: str
    reviewers: tuple[str, ...] = ()
    quorum: Quorum = Quorum()
    stages: tuple[Stage, ...] = Field(default=(), exclude_if=is_empty)
    stage: int = Field(default=0, exclude_if=is_empty)
    confirm_by: str | None = Field(default=None, exclude_if=is_empty)
    no_self_approval: bool = True
    no_maker_approval: bool = Field(default=False, exclude_if=is_empty)
    deadline_at_ms: int
    extend_until_ms: int = 0
    start_by_s: int = 3600
    undo_s: int = Field(default=0, exclude_if=is_empty)
    remind_at_ms: tuple[int, ...] = ()
    escalate: tuple[EscalationStep, ...] = ()
    fallback: Fallback = Fallback()
    channels: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    urgent: bool = False
    match_number: bool = False
    step_up: StepUp | None = Field(default=None, exclude_if=is_empty)
    deadline_waits: bool = False
    notify_requester: bool = False
    sample: Sample | None = Field(default=None, exclude_if=is_empty)
    rounds: int | None = Field(default=None, exclude_if=is_none)
    outsiders: tuple[str, ...] = Field(default=(), exclude_if=is_empty)

    @property
    def following(self) -> Stage | None:
        """The stage after the current one, if any."""
        return self.stages[self.stage + 1] if self.stage + 1 < len(self.stages) else None

    def state_deciders(self) -> dict[str, Any]:
        """Return the terms that say who decides, as a rule would state them."""
        others = ("reviewers", "quorum") if self.stages else ("stages",)
        return {name: getattr(self, name) for name in DECIDING if name not in others}

    def reviewers_of(self, step: int) -> tuple[str, ...]:
        """Return the reviewers of an escalation step; of the rule for step 0."""
        return self.escalate[step - 1].reviewers if step else self.reviewers


def merge_stages(terms: RuleTerms) -> RuleTerms:
    """Return the terms with the reviewers and the quorum of the last stage alone, for what has no stages."""
    if not terms.stages:
        return terms
    last = terms.stages[-1]
    return terms.model_copy(update={"stages": (), "reviewers": last.reviewers, "quorum": last.quorum})
