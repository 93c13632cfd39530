"""What rules want to know of the memory, and what was read."""

from collections.abc import Mapping
from typing import NamedTuple

from sayso.records.base import Immutable
from sayso.records.decisions import EarlierDenial
from sayso.records.memory.assessments import Assessment, Question
from sayso.records.memory.grants import Grant
from sayso.records.memory.mandates import Mandate


class Reading(Immutable):
    """What a counter held when a call was judged: its total, or a percentile of `samples` amounts.

    Of grants or mandates it holds those in force, and grants on probation, which let nothing run. `assessment` is
    instead what an assessor said about the call, and `denials` what people have denied.
    """

    total: int = 0
    samples: int = 0
    grants: tuple[Grant, ...] = ()
    assessment: Assessment | None = None
    mandates: tuple[Mandate, ...] = ()
    denials: tuple[EarlierDenial, ...] = ()


Readings = Mapping[str, Reading]
"""Readings by counter."""


class Wanted(NamedTuple):
    """A counter to read, with the length of its period; with a percentile it holds amounts.

    With `grants`, `counter` names a rule and an agent, and the grants in force are read with their counters. With
    `tool`, it names a conversation, and the mandates in force are read with the counters of this tool's calls.
    With a `question`, an assessor is asked instead. With `denials`, it names a call, and its denials are read.
    """

    counter: str
    per_s: int
    percentile: int | None = None
    grants: bool = False
    question: Question | None = None
    tool: str | None = None
    denials: bool = False


def is_counter(wanted: Wanted) -> bool:
    """Return whether it names one counter, rather than grants, mandates, denials or an assessor's question."""
    return not (wanted.grants or wanted.denials) and wanted.tool is None and wanted.question is None
