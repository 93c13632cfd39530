"""Frozen models for the constraints of grants, and for what a denial offers instead of its call."""

from enum import StrEnum

from pydantic import JsonValue

from sayso.records.base import Immutable


class ConstraintKind(StrEnum):
    """How a constraint limits an argument."""

    EQUAL = "equal"
    AT_MOST = "at_most"
    ONE_OF = "one_of"
    ANY = "any"
    HOSTS = "hosts"
    WITHIN = "within"


class Constraint(Immutable):
    """A limit on one argument: its value, its values, or for `at_most` its largest amount in millionths.

    For `hosts` the value lists the hosts of its URLs, for `within` it is the folder of its paths. With `any` the
    argument must be there, and its value does not matter.
    """

    path: str
    kind: ConstraintKind
    value: JsonValue = None


def may_miss(limit: Constraint) -> bool:
    """Return whether null is one of the values that a limit of a plan names; the argument may then be missing, too."""
    if limit.kind is ConstraintKind.EQUAL:
        return limit.value is None
    return limit.kind is ConstraintKind.ONE_OF and isinstance(limit.value, list) and None in limit.value


class Offered(Immutable):
    """The call that a denial offers instead: within the constraints, and otherwise the same, it passes once.

    `text` says so to the agent.
    """

    grant_id: str
    until_ms: int
    constraints: tuple[Constraint, ...]
    text: str
