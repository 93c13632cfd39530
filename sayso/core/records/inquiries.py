"""Frozen models for what reviewers do with an item before they decide: claim it, and ask its requester."""

from pydantic import Field

from sayso.core.records.base import Immutable
from sayso.core.records.decisions import Actor

CLAIM_MS = 15 * 60_000
"""How long a claim lasts."""

LONGEST_TEXT = 2000
MOST_INQUIRIES = 20
"""The most inquiries about one item."""


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


def find_claim(claim: Claim | None, now_ms: int) -> Claim | None:
    """Return a claim that has not expired."""
    return claim if claim is not None and now_ms < claim.until_ms else None


def find_open_inquiry(inquiries: tuple[Inquiry, ...]) -> Inquiry | None:
    """Return the inquiry without an answer; there is at most one."""
    return next((inquiry for inquiry in inquiries if inquiry.open), None)
