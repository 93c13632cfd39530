"""What goes on failing does not fill the log, and is not forgotten either."""

from structlog.testing import capture_logs

from service.logs import Trouble


def test_what_fails_again_and_again_is_told_when_it_begins_and_when_it_is_over() -> None:
    trouble = Trouble("beat_failed")
    with capture_logs() as told:
        trouble.over()
        for _ in range(500):
            trouble.note(ConnectionError("away"))
        assert [one["event"] for one in told] == ["beat_failed"]
        trouble.over()
        trouble.over()
        assert [one["event"] for one in told] == ["beat_failed", "beat_failed_no_longer"]
        assert told[-1]["times"] == 500
        trouble.note(ConnectionError("away"))
    assert told[-1]["event"] == "beat_failed", "it begins anew"


def test_something_else_that_goes_wrong_meanwhile_is_told_at_once() -> None:
    trouble = Trouble("beat_failed")
    with capture_logs() as told:
        trouble.note(ConnectionError("away"))
        trouble.note(ValueError("odd"), message="evt_1")
    assert [one["error"] for one in told] == ["ConnectionError: away", "ValueError: odd"]
    assert told[-1]["message"] == "evt_1"


def test_what_lasts_is_told_again_after_a_while() -> None:
    trouble = Trouble("beat_failed", again_ms=0)
    with capture_logs() as told:
        for _ in range(3):
            trouble.note(ConnectionError("away"))
    assert [one["times"] for one in told] == [1, 2, 3]
