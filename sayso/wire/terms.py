"""Views of the terms of items."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from sayso.core.records.proofs import StepUp
from sayso.core.records.terms import EscalationStep, Fallback, Quorum
from sayso.wire.models import Later, Timestamp, View, read_time


class StageView(View):
    """One of the stages in which an item is approved."""

    reviewers: tuple[str, ...]
    quorum: Quorum | None = Field(description="Null for agents.")


class TermsView(View):
    """The terms of an item."""

    rule_id: str | None
    rule_version: str
    reviewers: tuple[str, ...] = Field(description="Who may decide; empty for any reviewer.")
    quorum: Quorum | None = Field(description="Null for agents, who do not see what was drawn for a second look.")
    stages: Later[tuple[StageView, ...]] = Field(
        description="The stages; `reviewers` and `quorum` are those of the current one. Empty without stages."
    )
    stage: Later[int] = Field(description="The current stage, from 0.")
    confirm_by: Later[str | None] = Field(description="Who must also confirm the call; null for nobody.")
    no_self_approval: bool
    no_maker_approval: Later[bool] = Field(description="Whether the person who made the key cannot decide.")
    deadline_at: Timestamp = Field(validation_alias="deadline_at_ms")
    extend_until: Annotated[Timestamp | None, BeforeValidator(read_time)] = Field(
        validation_alias="extend_until_ms",
        description="The latest deadline that reviewers may set; null if they may not.",
    )
    start_by_s: int
    undo_s: Later[int] = Field(description="How long a decision can be undone before it takes effect; 0 for never.")
    remind_at: tuple[Timestamp, ...] = Field(validation_alias="remind_at_ms")
    escalate: tuple[EscalationStep, ...]
    fallback: Fallback
    channels: tuple[str, ...]
    match_number: Later[bool] = Field(description="Whether an approval needs the number that the requester sees.")
    step_up: Later[StepUp | None] = Field(description="What an approval needs beside a session; null for nothing.")
    secrets: Later[tuple[str, ...]] = Field(description="Paths of arguments that are masked in every text outside.")
    deadline_waits: Later[bool] = Field(description="Whether the deadline waits while the requester is asked.")
    urgent: Later[bool] = Field(description="Whether its notifications break through quiet hours.")
    rounds: Later[int | None] = Field(description="How often reviewers may request changes; null for 3 times.")
    outsiders: Later[tuple[str, ...]] = Field(
        description="Mail addresses outside that reviewers may invite, and *@DOMAIN; empty for nobody."
    )
    notify_requester: Later[bool] = Field(
        description="Whether the requester is notified of the outcome over `channels`."
    )
