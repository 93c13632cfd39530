"""Frozen models for the deliveries of an item's card to its reviewers."""

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from sayso.core.records.base import Immutable, is_empty


class DeliveryState(StrEnum):
    """The state of one delivery. `sent` means that the provider accepted it."""

    QUEUED = "queued"
    SENT = "sent"
    SEEN = "seen"
    FAILED = "failed"


class CardDelivery(Immutable):
    """The delivery of an item's card over one channel to one person, group or shared destination.

    A delivery of the `outcome` is queued when the item closes: for the requester, on the first channel of the rule
    where they have an address.
    """

    channel: str = Field(description="The channel's name in the channels file.")
    person: str = ""  # a reviewer or `group:<name>`; empty for the channel's own destination
    step: int = Field(default=0, description="The escalation step that added the person; 0 for the rule's reviewers.")
    outcome: bool = Field(default=False, description="Whether it notifies the requester of the outcome.")
    state: DeliveryState = DeliveryState.QUEUED
    tries: int = Field(default=0, description="Failed attempts since the last success.")
    reason: str | None = Field(default=None, max_length=500, description="Why the last attempt failed.")
    next_try_at_ms: int | None = None
    off_duty: bool = Field(default=False, description="Whether it waits for the working hours of the person.")
    sent_at_ms: int | None = None
    seen_at_ms: int | None = None
    references: dict[str, str] = Field(default_factory=dict, description="The provider's id of the card, by address.")
    shown: str = Field(default="", description="The version of the card that the provider accepted last.")
    reminded: int = Field(default=0, description="How many reminders were sent to this person.")
    stage: int = Field(default=0, exclude_if=is_empty)  # the stage of the item whose reviewers it notifies
    forward: int = Field(default=0, exclude_if=is_empty)  # how often the item was forwarded when its person was asked
    invitation: str = Field("", exclude_if=is_empty)  # the invitation whose link it mails, if any

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies it within its item: channel and person, the invitation, or that it is of the outcome."""
        if self.invitation:
            return ("invitation", self.invitation)
        return (self.channel, self.person) if not self.outcome else ("outcome",)

    @property
    def proven(self) -> bool:
        return self.state in (DeliveryState.SENT, DeliveryState.SEEN)


class DeliveryReport(NamedTuple):
    """The result of attempts at one delivery: what replaces it. A group becomes one delivery per member."""

    item_id: str
    key: tuple[str, ...]
    became: tuple[CardDelivery, ...]


def queue_deliveries(
    channels: tuple[str, ...], people: tuple[str, ...], step: int = 0, stage: int = 0, forward: int = 0
) -> tuple[CardDelivery, ...]:
    """Return one queued delivery per channel and person; without people one per channel."""
    return tuple(
        CardDelivery(channel=channel, person=person, step=step, stage=stage, forward=forward)
        for channel in channels
        for person in people or ("",)
    )


def ask_anew(
    deliveries: tuple[CardDelivery, ...], queued: Collection[CardDelivery], reminders: int
) -> tuple[CardDelivery, ...]:
    """Return the deliveries with those `queued`. Who was asked before the last forward is reminded of their card."""
    wanted = {card.key: card for card in queued}
    kept: list[CardDelivery] = []
    for card in deliveries:
        anew = wanted.get(card.key)
        if anew is None or card.forward >= anew.forward:
            kept.append(card)
        elif card.proven:
            marks = {"forward": anew.forward, "stage": anew.stage, "step": max(card.step, anew.step)}
            kept.append(card.model_copy(update={**marks, "reminded": reminders - 1}))
    known = {card.key for card in kept}
    return (*kept, *(card for card in wanted.values() if card.key not in known))
