"""Record one word on one item, and what came of it in the end."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from sayso.canonical_json import JsonObject
from sayso.records.base import Immutable


class ActorKind(StrEnum):
    """Who acts: a person, an agent's credential, or one of the machine's own parts."""

    HUMAN = "human"
    AGENT = "agent"
    POLICY = "policy"
    TIMEOUT = "timeout"
    WORKER = "worker"


class Actor(Immutable):
    """Somebody, and the way they came."""

    id: str
    kind: ActorKind
    channel: str = "api"


TIMEOUT = Actor(id="timeout", kind=ActorKind.TIMEOUT, channel="clock")
"""Who decides when nobody has."""


COVERED = Actor(id="coverage", kind=ActorKind.POLICY, channel="desk")
"""Who closes the other items of a pause for which one answer is enough."""


OUR_NAMES = frozenset({"policy", "timeout", "coverage", "headless", "clock", "worker", "provisioner", "desk"}) | {
    "webhook",
    "sayso",
    "system",
}
"""Who acts where no person does; nobody else may have one of these names, for the trail would not tell them apart."""

OUR_PREFIXES = ("aap:", "aap/", "aap-scope:")
"""How the names begin under which runs and requests of the Agent Approval Protocol are kept."""


class DecisionAction(StrEnum):
    """What a decision says."""

    APPROVE = "approve"
    DENY = "deny"
    VALUE = "value"
    FAIL = "fail"


class Decision(Immutable):
    """One reviewer's, or the timeout's, word on one item; `sayso.decision/1`.

    `args` is there only where the reviewer edited them; `args_digest` is the digest of the item as the reviewer saw it.
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
    by: Actor
    at_ms: int
    idempotency_key: str | None = None


class Verdict(StrEnum):
    """How an item ended."""

    APPROVED = "approved"
    DENIED = "denied"
    ANSWERED = "answered"
    FAILED = "failed"


class Outcome(Immutable):
    """The terminal outcome of an item; it never changes. `args` are exactly what runs, where something runs."""

    verdict: Verdict
    args: JsonObject | None = None
    value: JsonValue = None
    message: str | None = None
    by: Actor
    at_ms: int
    start_by_ms: int
    digest: str

    @property
    def may_run(self) -> bool:
        """Whether the call is to be executed."""
        return self.verdict in (Verdict.APPROVED, Verdict.ANSWERED)


class Report(Immutable):
    """What whoever ran a call outside says came of it; `error` says why it failed, or is a note."""

    success: bool
    output: JsonValue = None
    error: str | None = Field(default=None, max_length=4000)
    at_ms: int


class Permit(Immutable):
    """Proof that the leave to run an item's call was spent: when, in which attempt, and by which worker.

    `ended_at_ms` and `success` tell how the call ended, from when its result was saved on. Where the call runs outside,
    the holder is the key it was consumed with, and a `report` is expected in time.
    """

    redeemed_at_ms: int
    attempt: int
    holder: str
    ended_at_ms: int | None = None
    success: bool | None = None
    report_by_ms: int = 0
    report: Report | None = None


DIGEST_PATTERN = "^[0-9a-f]{64}$"


class DecisionRequest(Immutable):
    """What a reviewer sends, by whichever channel: the strict model every inbound decision is parsed into.

    `digest` is the digest of the item that the reviewer saw; a decision on anything else is refused.
    """

    action: Literal["approve", "deny", "value"]
    digest: str = Field(pattern=DIGEST_PATTERN, description="The digest of the item as you saw it.")
    args: JsonObject | None = Field(default=None, description="Edited arguments, whole; only with approve.")
    value: JsonValue = Field(default=None, description="The value asked for; only with value.")
    message: str | None = Field(default=None, max_length=2000, description="A reason; the agent is told it.")

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.args is not None and self.action != "approve":
            raise ValueError("args go only with approve; leave them out, or approve")
        if self.value is not None and self.action != "value":
            raise ValueError("value goes only with the action value; leave it out, or give the value")
        if self.action == "value" and "value" not in self.model_fields_set:
            raise ValueError("the action value needs the value to give; add it as value")
        return self
