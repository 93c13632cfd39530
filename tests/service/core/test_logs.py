"""A lasting failure is logged at its start, at intervals and at its end."""

from structlog.testing import capture_logs

from service.core.logs import Trouble


def test_repeated_failure_is_logged_at_its_start_and_end() -> None:
    trouble = Trouble("beat_failed")
    with capture_logs() as logs:
        trouble.over()
        for _ in range(500):
            trouble.note(ConnectionError("away"))
        assert [line["event"] for line in logs] == ["beat_failed"]
        trouble.over()
        trouble.over()
        assert [line["event"] for line in logs] == ["beat_failed", "beat_failed_no_longer"]
        assert logs[-1]["times"] == 500
        trouble.note(ConnectionError("away"))
    assert logs[-1]["event"] == "beat_failed", "it begins anew"


def test_different_failure_is_logged_at_once() -> None:
    trouble = Trouble("beat_failed")
    with capture_logs() as logs:
        trouble.note(ConnectionError("away"))
        trouble.note(ValueError("odd"), message="evt_1")
    assert [repr(line["exc_info"]) for line in logs] == ["ConnectionError('away')", "ValueError('odd')"]
    assert logs[-1]["message"] == "evt_1"


def test_lasting_failure_is_logged_again_later() -> None:
    trouble = Trouble("beat_failed", again_ms=0)
    with capture_logs() as logs:
        for _ in range(3):
            trouble.note(ConnectionError("away"))
    assert [line["times"] for line in logs] == [1, 2, 3]
