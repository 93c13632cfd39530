"""How the items of a tool, of a rule or of all were decided."""

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The numbers of items that were asked about, and that people or the fallback decided."""

    asked: int = 0
    decided: int = 0
    approved: int = 0
    denied: int = 0
    edited: int = 0
    fallback: int = 0


def read_outcomes(metrics: Mapping[str, int], prefix: str = "") -> dict[str, int]:
    """Return the fields of `Outcomes` from the counters that begin with the prefix."""
    return {field.name: metrics.get(f"{prefix}{field.name}", 0) for field in fields(Outcomes)}
