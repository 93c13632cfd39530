"""Tokens of model calls, as frameworks report them."""

from typing import Any

from sayso.canonical_json import MAX_INTEGER
from sayso.records.suspensions import ModelUsage


class UsageMeter:
    """Adds up the model calls between two stops of a run. One call without tokens makes the sum unknown."""

    def __init__(self) -> None:
        self._noted: list[ModelUsage | None] = []

    def note(self, model: Any, input_tokens: Any, output_tokens: Any, calls: int = 1) -> None:
        """Add calls of one model. Without input tokens they are unknown: frameworks report zero for what is missing."""
        name = model if isinstance(model, str) else ""
        if not (_is_count(input_tokens) and _is_count(output_tokens)) or (calls and not input_tokens):
            self._noted.append(None)
        elif input_tokens or output_tokens:
            used = ModelUsage(model=name, input_tokens=input_tokens, output_tokens=output_tokens, model_calls=calls)
            self._noted.append(used)

    def note_total(self, input_tokens: int, output_tokens: int, calls: int) -> None:
        """Add what the framework's total has beyond the calls noted so far, of a model without a name."""
        known = [usage for usage in self._noted if usage is not None]
        more_in = input_tokens - sum(usage.input_tokens for usage in known)
        more_out = output_tokens - sum(usage.output_tokens for usage in known)
        more_calls = max(0, calls - sum(usage.model_calls or 0 for usage in known))
        if min(more_in, more_out) < 0:  # calls of an earlier part of the run were noted too
            self._noted = [usage for usage in self._noted if usage is None]
            more_in, more_out, more_calls = input_tokens, output_tokens, calls
        self.note("", more_in, more_out, more_calls)

    def read(self) -> tuple[ModelUsage, ...] | None:
        """Return the usage by model, or None if that of one call is unknown."""
        totals: dict[str, ModelUsage] = {}
        for usage in self._noted:
            if usage is None:
                return None
            totals[usage.model] = totals[usage.model].plus(usage) if usage.model in totals else usage
        return tuple(totals.values())


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER
