"""The stages of a judgement: what features make of the decision that the rules have come to.

The table is complete or nothing is judged: the engine loads it when it is imported, and a stage that cannot be
loaded is an error there. So no process judges calls without one of them.
"""

from collections.abc import Iterator, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol

from sayso.core.policy.counters.readings import Wanted
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.rules import PolicyRule
from sayso.core.records.terms import RuleTerms

if TYPE_CHECKING:
    from sayso.core.policy.events import PolicyEvent

STAGES = ("sayso.features.permissions.judging:STAGE",)  # the stages in the order in which they apply, as `module:name`


class Rulebook(Protocol):
    """What a stage sees of the rules in force."""

    @property
    def terms(self) -> RuleTerms: ...

    @property
    def live(self) -> tuple[PolicyRule, ...]: ...

    @property
    def mandating(self) -> bool: ...


class Stage(Protocol):
    """What one feature adds to a judgement: what to read before it, and what to make of the decision."""

    def want(self, rules: Rulebook, event: "PolicyEvent", covering: Sequence[PolicyRule]) -> Iterator[Wanted]:
        """Yield what to read for `event`; `covering` are the remembering rules that cover it."""

    def apply(self, rules: Rulebook, event: "PolicyEvent", decision: PolicyDecision) -> PolicyDecision:
        """Return the decision after this stage."""


def load_stages(names: Sequence[str] = STAGES) -> tuple[Stage, ...]:
    """Return the stages in their order; raises for one that cannot be loaded."""
    return tuple(map(resolve_name, names))
