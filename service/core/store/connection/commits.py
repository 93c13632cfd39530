"""Guards and writes, as the script of commits takes them, and the hook by which features add theirs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

from sayso.core.records.suspensions import Change, SuspensionRecord
from service.core.store.connection.macs import Macs
from service.core.store.keys import TenantKeys

Value = TypeVar("Value")
_MOST_VALUES = 500

MOST_HANDED = 32
"""The most runs that wait for one worker at a time; others go to the ready list, from which any worker takes them."""


@dataclass
class Commit:
    """Guards and writes for `lua/commit.lua`; `between_ms` are its first and last time, `record` the saved record."""

    keys: dict[str, int] = field(default_factory=dict)
    between_ms: tuple[int, int] = (0, 0)
    guards: list[tuple[str | int, ...]] = field(default_factory=list)
    writes: list[str | bytes | int] = field(default_factory=list)
    lasting: set[int] = field(default_factory=set)
    rooms: dict[int, str] = field(default_factory=dict)
    totals: set[int] = field(default_factory=set)
    hand_overs: dict[int, str] = field(default_factory=dict)
    counted: int = 0
    record: bytes = b""
    update: "Update | None" = None

    def expect(self, key: str, version: int) -> None:
        """Require this version of `key`; with 0 it must not exist."""
        self.guards.append(("VERSION", self._place(key), version))

    def count(self, keys: TenantKeys, process: str, least: int) -> None:
        """Count this commit of a process; require that the store has those up to `least`, and is the live copy."""
        key = keys.commits
        self.guards.append(("COMMITS", self._place(key), process, least))
        self.expect(keys.moving, 0)
        self.counted = len(self.guards)
        self.write("COMMITTED", key, process)

    def is_uncounted(self, guard: int) -> bool:
        """Return whether the guard that failed is one of `count`."""
        return guard > 0 and guard in (self.counted - 1, self.counted)

    def expect_absent(self, key: str) -> None:
        """Require that `key` does not exist; a retry is useless once it does."""
        self.expect(key, 0)
        self.lasting.add(len(self.guards))

    def expect_length(self, key: str, length: int) -> None:
        """Require this exact number of entries of a list, or of fields of a hash."""
        self.guards.append(("LENGTH", self._place(key), length))

    def expect_room(self, key: str, most: int, full: str) -> None:
        """Require at most `most` members of `key`; `full` is the error message."""
        self.guards.append(("MEMBERS", self._place(key), most))
        self.rooms[len(self.guards)] = full

    def expect_total(self, key: str, most: int, slots: tuple[int, int, int]) -> None:
        """Require at most `most` in the slots of a counter: the given one, a count before it, and all later ones.

        `slots` are that count, the given slot, which may be over for at most one slot, and the length of a slot, ms.
        """
        self.guards.append(("TOTAL", self._place(key), most, *slots))
        self.totals.add(len(self.guards))

    def expect_waiting(self, keys: TenantKeys, worker: str) -> None:
        """Require that the worker waits for runs with little before this one, and that no run has waited longer."""
        lists = self._place(keys.handed(worker)), self._place(keys.ready)
        self.guards.append(("WAITING", self._place(keys.waiting), *lists, MOST_HANDED - 1, worker))
        self.hand_overs[len(self.guards)] = worker

    def write(self, command: str, key: str, *args: str | bytes | int) -> None:
        keys = self.keys
        self.writes += (len(args), command, keys.setdefault(key, len(keys) + 1), *args)

    def write_if(self, present: str, command: str, key: str, *args: str | bytes | int) -> None:
        """Write only if the key `present` exists at the time of the commit."""
        self.write(f"{command} IF", key, self._place(present), *args)

    def write_unless(self, present: str, command: str, key: str, *args: str | bytes | int) -> None:
        """Write only if the key `present` does not exist after the writes before."""
        self.write(f"{command} UNLESS", key, self._place(present), *args)

    def push_copy(self, key: str, prefix: str, of: str) -> None:
        """Append `prefix` and what this commit SET before to the key `of`."""
        self.write("RPUSH COPY", key, prefix, self._place(of))

    def arguments(self, macs: Macs) -> tuple[list[str], list[str | bytes | int]]:
        """Return the keys and arguments of the script, with MACs in what it writes."""
        writes = self._protect(macs) if macs.active else self.writes
        return list(self.keys), [*self.between_ms, len(self.guards), *chain.from_iterable(self.guards), *writes]

    def _protect(self, macs: Macs) -> Iterator[str | bytes | int]:
        names, at = list(self.keys), 0
        while at < len(self.writes):
            count, command, place = self.writes[at : at + 3]
            end = at + 3 + int(count)
            protected = macs.protect((command, names[int(place) - 1], *self.writes[at + 3 : end]))
            yield from (count, command, place, *protected[2:])
            at = end

    def _place(self, key: str) -> int:
        return self.keys.setdefault(key, len(self.keys) + 1)


class Update(NamedTuple):
    """One change of a suspension as its commit saves it.

    `after` has the new version, and the first new event the number `first_seq`. `pairs` are the records that the change
    saves, each with the one before it or None.
    """

    before: SuspensionRecord | None
    change: Change
    after: SuspensionRecord
    pairs: tuple[tuple[SuspensionRecord | None, SuspensionRecord], ...]
    first_seq: int
    at_ms: int


Writer = Callable[[Commit, TenantKeys, Update], None]  # adds guards and writes to the commit of an update


class Observer(Protocol):
    """What a feature learns of saved changes and delivered messages; it neither waits nor raises."""

    def note_change(self, update: Update) -> None:
        """Learn of a change that the store has saved."""

    def note_delivery(self, record: SuspensionRecord, message_id: str, at_ms: int, took_ms: float) -> None:
        """Learn that the receiver of a message has accepted it."""


def split_values(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield values in parts, each small enough for one command."""
    for begin in range(0, len(values), _MOST_VALUES):
        yield values[begin : begin + _MOST_VALUES]
