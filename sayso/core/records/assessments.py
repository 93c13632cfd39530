"""Frozen models for what an assessor says about a call."""

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from sayso.core.records.base import Immutable


class Level(StrEnum):
    """How risky an assessor takes a call to be."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


LEVELS = tuple(Level)
"""The levels, the lowest first."""


class Assessment(Immutable):
    """What an assessor said about one call. It can add scrutiny, and never decides.

    `key` names the assessor and the call. `fault` is why there is no usable answer; the call then counts as high.
    """

    key: str
    assessor: str
    level: Level
    score: float | None = Field(default=None, ge=0, le=1)
    reason: str = ""
    fault: str = ""


class Question(NamedTuple):
    """What an assessor is asked: its name, and the call as canonical JSON."""

    key: str
    assessor: str
    body: bytes


def assess_unanswered(question: Question, fault: str) -> Assessment:
    """Return the assessment of a call for which the assessor gave no usable answer."""
    return Assessment(key=question.key, assessor=question.assessor, level=Level.HIGH, fault=fault)
