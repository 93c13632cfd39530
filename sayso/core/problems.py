"""The HTTP status, problem type and title of every error, for the API, pages, AAP, clients and the test desk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sayso import errors
from sayso.errors import SaysoError

RESERVED_MEMBERS = frozenset({"type", "title", "status", "detail", "instance"})
"""Members that RFC 9457 defines; facts of an error use other names."""


@dataclass(frozen=True)
class ProblemType:
    """A row of the table. `slug` ends the type's URI: `/problems/{slug}`."""

    status: int
    slug: str
    title: str


PROBLEM_TYPES: Mapping[type[SaysoError], ProblemType] = {
    SaysoError: ProblemType(500, "something-broke", "Something broke"),
    errors.InvalidInput: ProblemType(422, "invalid-input", "Invalid input"),
    errors.InvalidJson: ProblemType(400, "invalid-json", "Not strict JSON"),
    errors.InvalidHeader: ProblemType(400, "invalid-header", "Invalid header"),
    errors.TooLarge: ProblemType(413, "too-large", "Too large"),
    errors.UnknownName: ProblemType(422, "unknown-name", "Unknown name"),
    errors.UnknownHost: ProblemType(421, "unknown-host", "Unknown host"),
    errors.UnsupportedMediaType: ProblemType(415, "unsupported-media-type", "Unsupported media type"),
    errors.NotAuthenticated: ProblemType(401, "not-authenticated", "Not authenticated"),
    errors.InvalidSignature: ProblemType(401, "invalid-signature", "Invalid signature"),
    errors.CodeRequired: ProblemType(401, "code-required", "A code is needed"),
    errors.WrongCode: ProblemType(401, "wrong-code", "Not a valid code"),
    errors.NotAllowed: ProblemType(403, "not-allowed", "Not allowed"),
    errors.SelfApproval: ProblemType(403, "self-approval", "Not your own call"),
    errors.InvalidPersonToken: ProblemType(403, "invalid-person-token", "Token for the person not valid"),
    errors.StepUpRequired: ProblemType(403, "step-up-required", "A step-up is missing"),
    errors.WrongNumber: ProblemType(403, "wrong-number", "Not the requester's number"),
    errors.PolicyForbids: ProblemType(403, "policy-forbids", "The rules forbid it"),
    errors.NotFound: ProblemType(404, "not-found", "Not found"),
    errors.Conflict: ProblemType(409, "conflict", "Conflict"),
    errors.AlreadyDecided: ProblemType(409, "already-decided", "Already decided"),
    errors.DeadlinePassed: ProblemType(409, "deadline-passed", "Deadline passed"),
    errors.StaleDigest: ProblemType(409, "stale-digest", "Stale digest"),
    errors.IdempotencyConflict: ProblemType(409, "idempotency-conflict", "Idempotency-Key used before"),
    errors.IllegalTransition: ProblemType(409, "illegal-transition", "Illegal transition"),
    errors.AlreadyRedeemed: ProblemType(409, "already-redeemed", "Already redeemed"),
    errors.Withdrawn: ProblemType(409, "withdrawn", "Approval withdrawn"),
    errors.LeaseHeld: ProblemType(409, "lease-held", "Lease held"),
    errors.Frozen: ProblemType(409, "frozen", "Frozen"),
    errors.ClockInDoubt: ProblemType(409, "clock-in-doubt", "Clock in doubt"),
    errors.OverLimit: ProblemType(409, "over-limit", "Over a limit of the rules"),
    errors.StaleAttempt: ProblemType(409, "stale-attempt", "Stale attempt"),
    errors.Unreadable: ProblemType(409, "unreadable", "Unreadable record"),
    errors.Altered: ProblemType(500, "altered", "Altered record"),
    errors.TooManyRequests: ProblemType(429, "too-many-requests", "Too many requests"),
    errors.ModelError: ProblemType(502, "model-error", "The model failed"),
    errors.FrameworkFault: ProblemType(500, "framework-fault", "The agent's framework failed"),
    errors.Unavailable: ProblemType(503, "unavailable", "Unavailable"),
}
"""A class without a row takes the row of its nearest ancestor."""

_BY_SLUG = {row.slug: kind for kind, row in PROBLEM_TYPES.items()}
_BY_STATUS: Mapping[int, type[SaysoError]] = {
    PROBLEM_TYPES[kind].status: kind
    for kind in (
        errors.TooLarge,
        errors.NotAuthenticated,
        errors.NotAllowed,
        errors.NotFound,
        errors.Conflict,
        errors.TooManyRequests,
        errors.Unavailable,
    )
}


@dataclass(frozen=True)
class Problem:
    """One error as a caller sees it (RFC 9457)."""

    status: int
    slug: str
    title: str
    detail: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.facts,
        }


def problem_type_of(kind: type[SaysoError]) -> ProblemType:
    """Return the row of an error class."""
    return next(PROBLEM_TYPES[ancestor] for ancestor in kind.__mro__ if ancestor in PROBLEM_TYPES)


def error_class_of(type_uri: str, status: int) -> type[SaysoError]:
    """Return the error class of a received problem; the status decides for an unknown type."""
    default = SaysoError if status >= 500 else errors.InvalidInput
    return _BY_SLUG.get(type_uri.rpartition("/")[2], _BY_STATUS.get(status, default))
