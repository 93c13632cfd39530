"""A jump of the store's clock is told from time that has passed."""

import pytest

from sayso.transitions.clock_jumps import JUMP_MS, ClockReading, find_drift_ms

HOUR = 3_600_000


def beat(at_ms: int, uptime_ms: int = 0, boot: str = "one", wall_ms: int | None = None) -> ClockReading:
    return ClockReading(at_ms=at_ms, uptime_ms=uptime_ms, boot=boot, wall_ms=at_ms if wall_ms is None else wall_ms)


@pytest.mark.parametrize(
    ("server_ms", "uptime_ms", "drift_ms"),
    [(1000, 1000, 0), (HOUR, HOUR, 0), (HOUR, 100, HOUR - 100), (-HOUR, 100, -HOUR - 100), (0, HOUR, -HOUR)],
)
def test_on_one_machine_the_uptime_is_the_measure(server_ms: int, uptime_ms: int, drift_ms: int) -> None:
    assert find_drift_ms(beat(0), beat(server_ms, uptime_ms)) == drift_ms


@pytest.mark.parametrize("boot", ["two", ""])
def test_after_a_restart_hours_without_a_beat_are_believed_when_the_wall_clocks_agree(boot: str) -> None:
    assert find_drift_ms(beat(0), beat(HOUR, 5, boot)) == 0
    assert find_drift_ms(beat(0), beat(HOUR, 5, boot, wall_ms=HOUR - JUMP_MS)) == 0


def test_after_a_restart_a_store_far_ahead_of_this_machine_is_not_believed() -> None:
    assert find_drift_ms(beat(0), beat(HOUR, 5, "two", wall_ms=0)) == HOUR
    assert find_drift_ms(beat(0), beat(1000, 5, "two", wall_ms=-HOUR)) == 1000, "no more than was gone past"


def test_a_store_that_went_back_is_noticed_after_a_restart_too() -> None:
    assert find_drift_ms(beat(HOUR), beat(0, 5, "two")) == -HOUR


def test_machines_that_tell_no_boot_are_never_taken_for_the_same_one() -> None:
    assert find_drift_ms(beat(0, boot=""), beat(HOUR, 5, boot="")) == 0
