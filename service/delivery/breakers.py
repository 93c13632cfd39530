"""Circuit breakers: a destination that keeps failing is probed by one attempt at a time."""

from dataclasses import dataclass, field
from typing import NamedTuple

FAILURES_TO_OPEN = 5
PROBE_EVERY_MS = 4_000


class OpenCircuit(NamedTuple):
    """A destination that is only probed: since when, and why its last attempt failed."""

    destination: str
    since_ms: int
    reason: str


@dataclass
class _Circuit:
    failures: int = 0
    closed_until_probe_ms: int = 0
    opened_at_ms: int = 0
    channel: str = ""
    reason: str = ""


@dataclass
class Breakers:
    """One circuit for each destination, in this process."""

    _circuits: dict[str, _Circuit] = field(default_factory=dict)

    def wait_ms(self, destination: str, now_ms: int) -> int:
        """Return how long to wait before an attempt. 0 permits one; on an open circuit it is the next probe."""
        circuit = self._circuits.get(destination)
        if circuit is None or circuit.failures < FAILURES_TO_OPEN:
            return 0
        left_ms = circuit.closed_until_probe_ms - now_ms
        if left_ms > 0:
            return left_ms
        circuit.closed_until_probe_ms = now_ms + PROBE_EVERY_MS
        return 0

    def note(self, destination: str, *, accepted: bool, now_ms: int, channel: str = "", reason: str = "") -> None:
        """Count an attempt. A success closes the circuit; enough failures in a row open it."""
        if accepted:
            self._circuits.pop(destination, None)
            return
        circuit = self._circuits.setdefault(destination, _Circuit())
        circuit.failures += 1
        circuit.closed_until_probe_ms = now_ms + PROBE_EVERY_MS
        circuit.channel, circuit.reason = channel, reason
        if circuit.failures == FAILURES_TO_OPEN:
            circuit.opened_at_ms = now_ms

    def is_failing(self, destination: str) -> bool:
        """Return whether the last attempt failed."""
        return destination in self._circuits

    def is_open(self, destination: str) -> bool:
        """Return whether the destination kept failing."""
        circuit = self._circuits.get(destination)
        return circuit is not None and circuit.failures >= FAILURES_TO_OPEN

    def list_open(self) -> dict[str, list[OpenCircuit]]:
        """Return the open circuits of each channel, by destination."""
        circuits: dict[str, list[OpenCircuit]] = {}
        for destination, circuit in sorted(self._circuits.items()):
            if circuit.failures >= FAILURES_TO_OPEN:
                shown = OpenCircuit(destination, circuit.opened_at_ms, circuit.reason)
                circuits.setdefault(circuit.channel, []).append(shown)
        return circuits
