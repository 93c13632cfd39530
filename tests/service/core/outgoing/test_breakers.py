"""Circuits open after failures in a row, are probed, and close with a success."""

from service.core.outgoing.http import FAILURES_TO_OPEN, PROBE_EVERY_MS, Breakers, OpenCircuit


def fail(breakers: Breakers, times: int, now_ms: int, reason: str = "HTTP 503") -> None:
    for _ in range(times):
        breakers.note("a.example", accepted=False, now_ms=now_ms, channel="ops", reason=reason)


def test_open_circuit_keeps_its_start_and_its_last_reason() -> None:
    breakers = Breakers()
    fail(breakers, FAILURES_TO_OPEN - 1, 1)
    assert breakers.list_open() == {}
    fail(breakers, 1, 2)
    fail(breakers, 3, 9, "HTTP 500")
    assert breakers.list_open() == {"ops": [OpenCircuit("a.example", 2, "HTTP 500")]}
    breakers.note("a.example", accepted=True, now_ms=10)
    assert breakers.list_open() == {}


def test_open_circuit_permits_one_probe_at_a_time() -> None:
    breakers = Breakers()
    fail(breakers, FAILURES_TO_OPEN, 0)
    assert breakers.wait_ms("a.example", 1) == PROBE_EVERY_MS - 1
    assert breakers.wait_ms("a.example", PROBE_EVERY_MS) == 0
    assert breakers.wait_ms("a.example", PROBE_EVERY_MS) == PROBE_EVERY_MS
    assert breakers.wait_ms("b.example", 0) == 0
