"""What the memory of all rules together means for one decision: its charges, and the limits that are reached."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sayso.policy.memory.recalling import Recalled
from sayso.policy.rules import Action, PolicyRule
from sayso.records.memory.charges import Charge, Remembered


def weigh_memory(
    rules: Sequence[PolicyRule], recalled: Mapping[str, Recalled], deciding: PolicyRule | None, reason: str
) -> dict[str, Any]:
    """Return what the memory of the rules said, the charges, and the reason with limits that are reached.

    `rules` are in the order of trial. Limits of charges count up to the rule that decides.
    """
    charges: list[Charge] = []
    allowance: tuple[Charge, ...] = ()
    remembered: list[Remembered] = []
    limited, reached = True, list[str]()
    for rule in rules:
        entry = recalled.get(rule.rule_id)
        if entry is not None:
            remembered += entry.remembered
        if entry is not None and rule.action is Action.ALLOW:
            allowance = entry.charges if rule is deciding else allowance
            reached += [rule.rule_id] if limited and entry.applies is False else []
        elif entry is not None:
            charges += entry.charges if limited else map(_unlimit, entry.charges)
        limited = limited and rule is not deciding
    if reached:
        reason = f"{reason} What {_join_rules(reached)} is used up."
    fields = {"remembered": tuple(remembered), "charges": tuple(charges), "allowance": allowance}
    return fields | {"reason": reason}


def list_shadow_charges(
    shadows: Iterable[tuple[PolicyRule, Action | None]], recalled: Mapping[str, Recalled]
) -> Iterator[Charge]:
    """Yield what a call adds to the counters of shadow rules, each with what it would have decided.

    A rule that allows counts what it would have allowed.
    """
    for rule, action in shadows:
        entry = recalled.get(rule.rule_id)
        if entry is not None and (action is Action.ALLOW or rule.action is not Action.ALLOW):
            yield from map(_unlimit, entry.charges)


def _unlimit(charge: Charge) -> Charge:
    return charge.model_copy(update={"most": None})


def _join_rules(reached: Sequence[str]) -> str:
    return f"rule {reached[0]} allows" if len(reached) == 1 else f"rules {', '.join(reached)} allow"
