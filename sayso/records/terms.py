"""Under which conditions an item is asked: who, how many, until when, and what happens when nobody answers.

A rule carries `RuleTerms`, written in seconds from the asking. When an item is asked they are frozen into `Terms`, with
absolute moments, so that a later change of the rule never touches what was already asked.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, ValidationInfo, field_validator

from sayso.records.base import Immutable

APPROVAL_TIMEOUT_S = 300
"""How long an approval waits when its rule does not say, the default of the tool-call lifecycle."""

LONGEST_WAIT_S = 30 * 86_400
"""No term reaches further than this: there is no waiting without an end."""


REPORT_WITHIN_S = 86_400
"""How long whoever consumed a call's leave has to say what came of it, where they do not say otherwise."""


class FallbackAction(StrEnum):
    """What decides at the deadline when no reviewer has."""

    DENY = "deny"
    APPROVE = "approve"
    VALUE = "value"
    ESCALATE = "escalate"
    FAIL = "fail"


class Fallback(Immutable):
    """The word that is given for the reviewers when the deadline passes."""

    action: FallbackAction = FallbackAction.DENY
    value: JsonValue = None
    message: str | None = Field(default=None, max_length=2000)


class Quorum(Immutable):
    """How many different people must approve, and how many must deny, before an item is decided."""

    approve: int = Field(default=1, ge=1, le=20)
    deny: int = Field(default=1, ge=1, le=20)


class EscalationStep(Immutable):
    """Reviewers who join an item that is still undecided some time after it was asked."""

    after_s: int = Field(ge=1, le=LONGEST_WAIT_S)
    reviewers: tuple[str, ...] = Field(min_length=1)


class RuleTerms(Immutable):
    """Terms as a rule states them, in seconds from the moment of asking."""

    reviewers: tuple[str, ...] = ()
    quorum: Quorum = Quorum()
    no_self_approval: bool = True
    timeout_s: int = Field(default=APPROVAL_TIMEOUT_S, ge=0, le=LONGEST_WAIT_S)
    extend_by_s: int = Field(default=0, ge=0, le=LONGEST_WAIT_S)
    start_by_s: int = Field(default=3600, ge=1, le=LONGEST_WAIT_S)
    remind_after_s: tuple[Annotated[int, Field(ge=1, le=LONGEST_WAIT_S)], ...] = ()
    escalate: tuple[EscalationStep, ...] = ()
    unattended_approval: bool = False
    fallback: Fallback = Fallback()
    channels: tuple[str, ...] = ()

    @field_validator("fallback")
    @classmethod
    def _check_fallback(cls, fallback: Fallback, info: ValidationInfo) -> Fallback:
        # What was itself wrong is absent from the data, and told already.
        if fallback.action is FallbackAction.APPROVE and not info.data.get("unattended_approval", True):
            raise ValueError(
                "fallback approve would run the call with nobody looking; "
                "say unattended_approval: true in the same terms, or choose deny"
            )
        if fallback.action is FallbackAction.ESCALATE and not info.data.get("escalate", True):
            raise ValueError("fallback escalate needs at least one step under escalate:")
        if fallback.action is FallbackAction.VALUE and "value" not in fallback.model_fields_set:
            raise ValueError("fallback value needs the value to give; write it beside it as value:")
        return fallback


class Terms(Immutable):
    """The terms of one item, frozen when it was asked. An empty list of reviewers means: any reviewer."""

    rule_id: str | None = None
    rule_version: str
    reviewers: tuple[str, ...] = ()
    quorum: Quorum = Quorum()
    no_self_approval: bool = True
    deadline_at_ms: int
    extend_until_ms: int = 0
    start_by_s: int = 3600
    remind_at_ms: tuple[int, ...] = ()
    escalate: tuple[EscalationStep, ...] = ()
    fallback: Fallback = Fallback()
    channels: tuple[str, ...] = ()


def freeze_terms(terms: RuleTerms, *, rule_id: str | None, rule_version: str, now_ms: int) -> Terms:
    """Return the rule's terms as they hold for an item asked at `now_ms`."""
    return Terms(
        rule_id=rule_id,
        rule_version=rule_version,
        reviewers=terms.reviewers,
        quorum=terms.quorum,
        no_self_approval=terms.no_self_approval,
        deadline_at_ms=now_ms + terms.timeout_s * 1000,
        extend_until_ms=now_ms + (terms.timeout_s + terms.extend_by_s) * 1000 if terms.extend_by_s else 0,
        start_by_s=terms.start_by_s,
        remind_at_ms=tuple(now_ms + after_s * 1000 for after_s in terms.remind_after_s),
        escalate=terms.escalate,
        fallback=terms.fallback,
        channels=terms.channels,
    )
