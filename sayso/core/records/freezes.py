"""Frozen models for freezes, for jumps of the store's clock, and for revocations with the runs that they withdraw.

A revocation is permanent, even when another key has the same name now. A rotated key that ends after its overlap is
not revoked: its runs continue until its successor is revoked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from pydantic import Field

from sayso.core.clock import iso_utc
from sayso.core.records.base import Immutable, Stored
from sayso.core.records.suspensions import RunRef, SuspensionRecord

ALL = "all"
TIME = "time"  # the scope of a clock in doubt. Only the clock freezes it.
SCOPE_PATTERN = r"^(all|agent:[^\x00-\x1f]{1,200}|tool:[^\x00-\x1f]{1,200})$"


class Loss(Immutable):
    """Commits that a store had at `to_ms`, and lost when it went back; it has those up to `from_ms`, 0 if unknown."""

    commits: int
    from_ms: int
    to_ms: int

    def describe(self) -> str:
        """Name the commits and the window, to the second."""
        many, are = (f"{self.commits} commits", "are") if self.commits != 1 else ("1 commit", "is")
        begin = f"between {_show(self.from_ms)} and" if self.from_ms else "before"
        return f"The store went back: {many} {begin} {_show(self.to_ms)} {are} gone"


class Freeze(Stored):
    """An emergency stop: nothing new starts within `scope`, which is everything, one agent or one tool.

    A freeze of time begins at the last reading of the clock that is certain; `jumped_to_ms` is the next reading.
    """

    id: str
    scope: str = Field(pattern=rf"^{TIME}$|{SCOPE_PATTERN}")
    reason: str = Field(default="", max_length=2000)
    by: str
    at_ms: int
    unfrozen_by: str | None = None
    unfrozen_at_ms: int | None = None
    jumped_to_ms: int | None = None
    deadlines: Literal["move", "pass"] = Field(
        default="move", description="Whether unfreezing moves deadlines by the frozen time, or lets them pass."
    )
    settled: bool = Field(default=False, description="Whether everything it held was resumed after unfreezing.")
    checked: str = Field(default="", max_length=2000, description="What was checked before unfreezing.")
    lost: Loss | None = Field(default=None, description="What is gone, if the store went back.")

    @property
    def in_force(self) -> bool:
        return self.unfrozen_at_ms is None

    def covers(self, agent: str, tool: str | None = None) -> bool:
        return self.scope in (ALL, f"agent:{agent}") or (tool is not None and self.scope == f"tool:{tool}")

    def held(self, record: SuspensionRecord) -> bool:
        """Whether any part of the record was in scope."""
        if self.scope == TIME:
            return self.doubts(record)
        tools = {item.tool.name for item in record.items} | set(record.waits_for)
        return any(self.covers(record.run.agent, tool) for tool in (None, *tools))

    def doubts(self, record: SuspensionRecord) -> bool:
        """Whether this is a freeze of time that began after the record."""
        return self.jumped_to_ms is not None and record.created_at_ms < self.jumped_to_ms


JUMP_MS = 300_000  # the smallest step of the store's clock that counts as a jump, and freezes time


class ClockReading(Immutable):
    """A reading of the store's clock, with the uptime and wall clock of the machine that took it."""

    at_ms: int
    uptime_ms: int
    boot: str
    wall_ms: int


def find_drift_ms(last: ClockReading, now: ClockReading) -> int:
    """Return how far the store's clock ran ahead between two readings; negative when it went back.

    The uptime of one machine since one boot measures the real time between them. Without it, a gap is believed as far
    as this machine's wall clock agrees with the store's clock.
    """
    passed_ms = now.at_ms - last.at_ms
    if now.boot and now.boot == last.boot:
        return passed_ms - (now.uptime_ms - last.uptime_ms)
    if passed_ms < 0:
        return passed_ms
    ahead_ms = now.at_ms - now.wall_ms
    return min(ahead_ms, passed_ms) if ahead_ms > JUMP_MS else 0


def describe_jump(from_ms: int, to_ms: int) -> str:
    """Say from where to where the store's clock jumped, to the second."""
    return f"The store's clock jumped from {_show(from_ms)} to {_show(to_ms)}"


def _show(at_ms: int) -> str:
    return f"{iso_utc(at_ms)[:19].replace('T', ' ')} UTC"


class Key(Protocol):
    """The fields of a key that a revocation depends on."""

    @property
    def id(self) -> str: ...
    @property
    def created_at_ms(self) -> int: ...
    @property
    def revoked_at_ms(self) -> int | None: ...
    @property
    def ends_at_ms(self) -> int | None: ...  # because it was rotated
    @property
    def predecessor_id(self) -> str | None: ...


class NamedKey(NamedTuple):
    """An agent's key, for runs saved before records held a key id."""

    id: str
    created_at_ms: int


@dataclass(frozen=True)
class Revocations:
    """Keys whose runs are withdrawn, and deactivated reviewers."""

    revoked: frozenset[str] = frozenset()
    by_name: Mapping[str, tuple[NamedKey, ...]] = field(default_factory=dict)
    inactive: frozenset[str] = frozenset()

    def find_withdrawal(self, run: RunRef) -> str | None:
        """Return why the run is withdrawn, or None.

        A run without a key id is withdrawn when all keys that its owner had at its start are revoked.
        """
        if run.key_id is not None:
            revoked = run.key_id in self.revoked
            return f"Key {run.key_id} of {run.owner}, which started the run, was revoked." if revoked else None
        owned = [key.id for key in self.by_name.get(run.owner, ()) if key.created_at_ms <= run.started_at_ms]
        if owned and all(key_id in self.revoked for key_id in owned):
            return f"The key of {run.owner}, which started the run, was revoked."
        return None


def find_revoked(keys: Iterable[Key]) -> frozenset[str]:
    """Return the ids of revoked keys, and of rotated keys that had ended when their last successor was revoked."""
    newest_first = sorted(keys, key=lambda key: key.created_at_ms, reverse=True)
    successors: dict[str, list[str]] = {}
    for key in newest_first:
        if key.predecessor_id is not None:
            successors.setdefault(key.predecessor_id, []).append(key.id)
    revoked = {key.id: key.revoked_at_ms for key in newest_first if key.revoked_at_ms is not None}
    before = -1
    while before != len(revoked):
        before = len(revoked)
        for key in newest_first:
            following = successors.get(key.id, [])
            if key.id in revoked or key.ends_at_ms is None or not following or {*following} - revoked.keys():
                continue
            last_ms = max(revoked[key_id] for key_id in following)
            if key.ends_at_ms <= last_ms:
                revoked[key.id] = last_ms
    return frozenset(revoked)
