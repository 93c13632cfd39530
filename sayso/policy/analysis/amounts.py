"""The amount of a call: the argument that rules compare with a number, and its currency."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from sayso.errors import InvalidInput
from sayso.policy.conditions import find_comparisons
from sayso.policy.engine import Policy, PolicyEvent
from sayso.policy.lookalikes import may_be_about
from sayso.policy.rules import PolicyRule

_CONVERTED = re.compile(r"(?:double|int|uint)\(\s*args\.([A-Za-z_]\w*)\s*\)\s*[<>]=?")
_ORDER = ("<", ">", "<=", ">=")
_PATH = re.compile(r"args(?:\.[A-Za-z_]\w*)+")
_CURRENCIES = ("currency", "currencycode", "ccy")
_CURRENCY = re.compile(r"[A-Z]{3}")
_LARGEST = 10**15


class Amount(NamedTuple):
    """A number with its currency, which is empty where the call names none."""

    number: Decimal
    currency: str = ""


class AmountFinder:
    """Finds the amount of a call: at `path`, or else the first number that a rule about its tool compares."""

    def __init__(self, policies: Sequence[Policy], path: str | None = None) -> None:
        if path and not _PATH.fullmatch(path):
            raise InvalidInput(f"{path!r} is not an argument. Write it as args.amount or args.order.total.")
        self._path = path.split(".")[1:] if path else None
        self._compared = [] if path else [pair for policy in policies for pair in _list_compared(policy)]

    def find(self, event: PolicyEvent) -> Amount | None:
        """Return the amount of a call, or None."""
        if self._path is not None:
            *outer, name = self._path
            holder: Any = event.tool_args
            for step in outer:
                holder = holder.get(step) if isinstance(holder, dict) else None
            return _read(holder, name) if isinstance(holder, dict) else None
        for rule, name in self._compared:
            amount = _read(event.tool_args, name)
            if amount is not None and may_be_about(rule, event.tool_name or ""):
                return amount
        return None


def _list_compared(policy: Policy) -> list[tuple[PolicyRule, str]]:
    """Return each rule with the arguments that its condition orders by a number."""
    compared: list[tuple[PolicyRule, str]] = []
    for rule in policy.rules:
        when = rule.condition.when or ""
        plain = [clause.arg for clause in find_comparisons(when) if clause.sign in _ORDER and not clause.is_text]
        compared += [(rule, name) for name in dict.fromkeys((*plain, *_CONVERTED.findall(when)))]
    return compared


def _read(args: Mapping[str, Any], name: str) -> Amount | None:
    value = args.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    named = {str(text).upper() for key, text in args.items() if _normalize(key).endswith(_CURRENCIES)}
    currency = named.pop() if len(named) == 1 else ""
    return Amount(Decimal(str(value)), currency if _CURRENCY.fullmatch(currency) else "")


def _normalize(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
