"""What a worker leaves word of is believed only once it is gone, and only where it must be whole."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sayso.suspensions import Intent
from sayso.tool_calls import ToolResult
from tests.sayso.test_resumptions import intent
from workers import notes
from workers.notes import FOLDER, find_notes, has_started, keeping_notes, read_left, result_of

HOLDER = "machine:7.abcd"
RESULT = ToolResult(call_id="call_0", tool_name="refund", success=True, output="done")
BEGUN = intent()
ENDED, UNHEARD_OF = (BEGUN.model_copy(update={"idempotency_key": f"key {number}"}) for number in (1, 2))


def be_killed(home: Path, work: Callable[[], None] = lambda: None, *, bury: bool = True) -> int:
    """Be a worker in a process of its own that starts two calls, ends one, and is killed."""
    child = os.fork()
    if child == 0:
        with keeping_notes(home, HOLDER):
            kept = find_notes(HOLDER)
            assert kept is not None
            kept.note_start(BEGUN)
            kept.note_start(ENDED)
            kept.note_end(ENDED, RESULT)
            work()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | (0 if bury else os.WNOWAIT))
    return child


@pytest.mark.parametrize("bury", [True, False])
def test_a_killed_worker_has_left_word_of_what_it_started_and_how_it_ended(tmp_path: Path, bury: bool) -> None:
    child = be_killed(tmp_path, bury=bury)
    left = read_left(tmp_path, HOLDER)
    assert left is not None
    assert [has_started(left, one) for one in (BEGUN, ENDED, UNHEARD_OF)] == [True, True, False]
    assert [result_of(left, one) for one in (BEGUN, ENDED)] == [None, RESULT]
    other: Intent = ENDED.model_copy(update={"attempt": 2})
    assert (has_started(left, other), result_of(left, other)) == (False, None)
    if not bury:
        os.waitpid(child, 0)


def test_nothing_is_known_of_a_worker_that_lives_or_has_ended_in_order(tmp_path: Path) -> None:
    with keeping_notes(tmp_path, HOLDER):
        assert find_notes(HOLDER) is not None
        assert read_left(tmp_path, HOLDER) is None
    assert find_notes(HOLDER) is None
    assert read_left(tmp_path, HOLDER) is None
    assert [*(tmp_path / FOLDER).iterdir()] == []


@pytest.mark.parametrize("place", range(3))
def test_nothing_is_known_on_another_machine_or_after_it_was_started_anew(tmp_path: Path, place: int) -> None:
    be_killed(tmp_path)
    path = tmp_path / FOLDER / HOLDER
    about = notes._describe_machine()[place]
    path.write_text(path.read_text().replace(about, "another", 1))
    assert read_left(tmp_path, HOLDER) is None


def test_nothing_is_known_from_notes_that_are_cut_off(tmp_path: Path) -> None:
    be_killed(tmp_path)
    path = tmp_path / FOLDER / HOLDER
    path.write_text(path.read_text()[:-5])
    assert read_left(tmp_path, HOLDER) is None
    path.write_text("")
    assert read_left(tmp_path, HOLDER) is None


def test_notes_that_cannot_be_written_are_taken_away(tmp_path: Path) -> None:
    with keeping_notes(tmp_path, HOLDER):
        kept = find_notes(HOLDER)
        assert kept is not None
        with open(os.devnull, "rb") as nowhere:
            os.dup2(nowhere.fileno(), kept._file)
        kept.note_start(BEGUN)
        assert not (tmp_path / FOLDER / HOLDER).exists()


def test_where_no_notes_can_be_kept_runs_are_driven_without(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file where the folder should be")
    with keeping_notes(tmp_path, HOLDER):
        assert find_notes(HOLDER) is None


def test_a_large_result_is_no_note(tmp_path: Path) -> None:
    large = RESULT.model_copy(update={"output": "x" * 100_000})

    def end_large() -> None:
        kept = find_notes(HOLDER)
        assert kept is not None
        kept.note_end(BEGUN, large)

    be_killed(tmp_path, end_large)
    left = read_left(tmp_path, HOLDER)
    assert left is not None
    assert result_of(left, BEGUN) is None


def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    be_killed(tmp_path)
    os.utime(tmp_path / FOLDER / HOLDER, (0, 0))
    with keeping_notes(tmp_path, "another"):
        assert [one.name for one in (tmp_path / FOLDER).iterdir()] == ["another"]
