"""The admins' evidence: the span of every freeze.

The checker derives from these spans, not from the trails, which starts were forbidden and how far deadlines move.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

FILE = "freezes.jsonl"


class FreezeLine(BaseModel):
    """One freeze; at `acknowledged_at_ms` its admin received the confirmation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scope: str
    at_ms: int
    acknowledged_at_ms: int
    unfrozen_at_ms: int

    def covers(self, agent: str, tool: str) -> bool:
        """Whether it freezes calls of this tool by this agent."""
        return self.scope in ("all", f"agent:{agent}", f"tool:{tool}")


def write_freeze(home: Path, line: FreezeLine) -> None:
    """Append a freeze that has ended."""
    with (home / FILE).open("a", encoding="utf-8") as file:
        file.write(line.model_dump_json() + "\n")


def read_freezes(home: Path) -> Iterator[FreezeLine]:
    """Return all freezes in the order of their ends."""
    if (home / FILE).exists():
        with (home / FILE).open(encoding="utf-8") as lines:
            yield from map(FreezeLine.model_validate_json, lines)


def overlap_ms(freezes: Iterable[FreezeLine], from_ms: int, to_ms: int) -> int:
    """Return for how long any of the freezes held between two times; overlaps count once."""
    total, counted_to_ms = 0, from_ms
    for one in sorted(freezes, key=lambda line: line.at_ms):
        end_ms = min(one.unfrozen_at_ms, to_ms)
        total += max(0, end_ms - max(one.at_ms, counted_to_ms))
        counted_to_ms = max(counted_to_ms, end_ms)
    return total
