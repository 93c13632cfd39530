"""Write down what was frozen during a storm and from when to when, and say how much of a time that was.

What stood still is told by the admin who froze it, not by the trails: by these spans the checker knows what must not
start, how much later a deadline comes, and which of its moves are right.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

FILE = "freezes.jsonl"


class FreezeLine(BaseModel):
    """One freeze, from its first moment to its lifting; its admin was told of it at `told_at_ms`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scope: str
    at_ms: int
    told_at_ms: int
    unfrozen_at_ms: int

    def covers(self, agent: str, tool: str) -> bool:
        """Whether calls of this tool by this agent stood still."""
        return self.scope in ("all", f"agent:{agent}", f"tool:{tool}")


def write_freeze(home: Path, line: FreezeLine) -> None:
    """Append a freeze that is over."""
    with (home / FILE).open("a", encoding="utf-8") as file:
        file.write(line.model_dump_json() + "\n")


def read_freezes(home: Path) -> Iterator[FreezeLine]:
    """Return every freeze of a storm, in the order in which they ended."""
    if (home / FILE).exists():
        with (home / FILE).open(encoding="utf-8") as lines:
            yield from map(FreezeLine.model_validate_json, lines)


def overlap_ms(freezes: Iterable[FreezeLine], from_ms: int, to_ms: int) -> int:
    """Return for how long between two moments any of these freezes held, whatever overlaps."""
    total, counted_to_ms = 0, from_ms
    for one in sorted(freezes, key=lambda line: line.at_ms):
        end_ms = min(one.unfrozen_at_ms, to_ms)
        total += max(0, end_ms - max(one.at_ms, counted_to_ms))
        counted_to_ms = max(counted_to_ms, end_ms)
    return total
