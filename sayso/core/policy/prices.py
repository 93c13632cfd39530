"""Prices of models in a rules file, and what the model calls of a run cost by them."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from pydantic import Field

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable
from sayso.core.records.suspensions import ModelUsage

_UNIT = 1_000_000
"""Prices are per million tokens."""


class ModelPrice(Immutable):
    """The price of a million tokens of one model, in the currency of the file's author."""

    input: float = Field(ge=0, le=1_000_000)
    output: float = Field(ge=0, le=1_000_000)


Prices = Mapping[str, ModelPrice]
"""The prices by the name of a model, or by a pattern; an exact name has priority, then the first pattern."""


def digest_prices(prices: Prices) -> JsonObject:
    """Return what the version of the rules includes of the prices, in the order in which they are tried."""
    return {"model_prices": [[name, price.input, price.output] for name, price in prices.items()]} if prices else {}


def count_usage(usage: Sequence[ModelUsage]) -> dict[str, int | None]:
    """Return the tokens and the model calls of a run; the calls are None if unknown."""
    given, made = sum(use.input_tokens for use in usage), sum(use.output_tokens for use in usage)
    known = [use.model_calls for use in usage if use.model_calls is not None]
    calls = sum(known) if len(known) == len(usage) else None
    return {"tokens": given + made, "input_tokens": given, "output_tokens": made, "model_calls": calls}


def compute_cost(usage: Sequence[ModelUsage], prices: Prices) -> float | None:
    """Return what the model calls cost; None if one of the models has no price."""
    cost = 0.0
    for use in usage:
        price = _find_price(use.model, prices)
        if price is None:
            return None
        cost += (use.input_tokens * price.input + use.output_tokens * price.output) / _UNIT
    return cost


def _find_price(model: str, prices: Prices) -> ModelPrice | None:
    if model in prices:
        return prices[model]
    return next((price for pattern, price in prices.items() if model and fnmatchcase(model, pattern)), None)
