"""What each rule costs: how often it asks, the time that people spend on it, and how they decide."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sayso.core.text.language import _, ngettext
from service.desk.grants.granting import Granting
from service.operations.insights.outcomes import Outcomes, read_outcomes
from service.store.insights.metrics import Metric
from service.store.insights.tallies import Count, group_by_name
from service.store.suspensions.rule_hits import DEFAULT

_HOUR_MS = 3_600_000


@dataclass(frozen=True, kw_only=True)
class RuleCost(Outcomes):
    """The figures of one rule. An empty name stands for all rules beyond the limit of counters.

    `decisions` counts all of people, more than one for an item with a quorum. `look_ms` is the time of the
    `measured` ones. In `disagreed` of the `second_opinions` a person disagreed with the call, which ran in `wrong` of
    them. `near` counts calls that were allowed one step from a person. `proposals` counts the grants that Sayso
    proposes for it and that a person may put in force.
    """

    rule: str
    decisions: int
    measured: int
    look_ms: int
    proposals: int = 0
    second_opinions: int = 0
    disagreed: int = 0
    wrong: int = 0
    near: int = 0

    @property
    def near_misses(self) -> int:
        """Calls that ran although a second look found them wrong, and allowed calls one step from a person."""
        return self.wrong + self.near

    @property
    def by_default(self) -> bool:
        """Whether these are the calls that no rule matched."""
        return self.rule == DEFAULT

    @property
    def people_ms(self) -> int:
        """The time of all decisions: those without a measured look count as the average of the measured ones."""
        return round(self.look_ms * self.decisions / self.measured) if self.measured else 0

    @property
    def time(self) -> str:
        """The time of people, in minutes below an hour and in hours above."""
        if not self.measured:
            return _("time unknown")
        if self.people_ms >= _HOUR_MS:
            return _("%(hours)s h", hours=f"{self.people_ms / _HOUR_MS:.1f}")
        return _("%(minutes)s min", minutes=f"{self.people_ms / 60_000:.1f}")

    @property
    def sentence(self) -> str:
        """The cost in a line."""
        name = _("default") if self.by_default else self.rule or _("all others")
        asks = ngettext("%(number)s ask", "%(number)s asks", self.asked, number=f"{self.asked:,}")
        denials = ngettext("%(number)s denial", "%(number)s denials", self.denied, number=f"{self.denied:,}")
        cost = f"{name}: {asks}, {self.time}, {denials}"
        if not self.proposals:
            return cost
        ready = ngettext("a grant proposal is ready", "%(num)s grant proposals are ready", self.proposals)
        return f"{cost}: {ready}"


async def add_proposals(grants: Granting, costs: Iterable[RuleCost]) -> tuple[RuleCost, ...]:
    """Return the costs with the grants that wait for a person."""
    ready = await grants.count_ready()
    return tuple(replace(cost, proposals=ready[cost.rule]) for cost in costs)


def list_rule_costs(total: Counter[Count]) -> list[RuleCost]:
    """Return the cost of each rule, those with the most time of people first."""
    of_rules = Counter({key: count for key, count in total.items() if key[0].startswith("rule_")})
    costs = (_describe(rule, metrics) for rule, metrics in group_by_name(of_rules).items())
    return sorted(costs, key=lambda cost: (-cost.people_ms, -cost.asked, cost.rule))


def _describe(rule: str, metrics: Counter[str]) -> RuleCost:
    return RuleCost(
        rule=rule,
        **read_outcomes(metrics, "rule_"),
        decisions=metrics[Metric.RULE_DECISIONS],
        measured=metrics[Metric.RULE_MEASURED],
        look_ms=metrics[Metric.RULE_LOOK_MS],
        second_opinions=metrics[Metric.RULE_SECOND_LOOK],
        disagreed=metrics[Metric.RULE_DISAGREED],
        wrong=metrics[Metric.RULE_WRONG],
        near=metrics[Metric.RULE_NEAR],
    )
