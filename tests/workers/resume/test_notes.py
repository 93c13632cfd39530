"""A worker's notes prove results, and prove that a call never started once the worker has ended."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sayso.core.records.suspensions import Intent
from sayso.core.records.tools import ToolResult
from tests.sayso.samples import intent
from workers.resume import notes
from workers.resume.notes import (
    FOLDER,
    Noted,
    await_notes,
    find_notes,
    keeping_notes,
    never_started,
    noted_result,
    read_notes,
)

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
            kept.note_start(1, BEGUN.idempotency_key)
            kept.note_start(1, ENDED.idempotency_key)
            kept.note_end(1, ENDED.idempotency_key, RESULT)
            work()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | (0 if bury else os.WNOWAIT))
    return child


@pytest.mark.parametrize("bury", [True, False])
def test_notes_of_a_killed_worker_are_whole(tmp_path: Path, bury: bool) -> None:
    child = be_killed(tmp_path, bury=bury)
    noted = read_notes(tmp_path, HOLDER)
    assert noted is not None
    assert [never_started(noted, one) for one in (BEGUN, ENDED, UNHEARD_OF)] == [False, False, True]
    assert [noted_result(noted, one) for one in (BEGUN, ENDED)] == [None, RESULT]
    other: Intent = ENDED.model_copy(update={"attempt": 2})
    assert (never_started(noted, other), noted_result(noted, other)) == (True, None)
    if not bury:
        os.waitpid(child, 0)


def test_notes_of_a_live_worker_prove_ends_but_not_starts(tmp_path: Path) -> None:
    with keeping_notes(tmp_path, HOLDER):
        kept = find_notes(HOLDER)
        assert kept is not None
        kept.note_end(1, ENDED.idempotency_key, RESULT)
        noted = read_notes(tmp_path, HOLDER)
        assert noted == Noted(whole=False, results={f"1 {ENDED.idempotency_key}": RESULT})
        assert not any(never_started(noted, one) for one in (BEGUN, ENDED, UNHEARD_OF))


def test_no_notes_after_an_orderly_end(tmp_path: Path) -> None:
    with keeping_notes(tmp_path, HOLDER):
        pass
    assert find_notes(HOLDER) is None
    assert read_notes(tmp_path, HOLDER) is None
    assert [*(tmp_path / FOLDER).iterdir()] == []


@pytest.mark.parametrize("place", range(3))
def test_no_notes_on_another_machine_or_boot(tmp_path: Path, place: int) -> None:
    be_killed(tmp_path)
    path = tmp_path / FOLDER / HOLDER
    about = notes._describe_machine()[place]
    path.write_text(path.read_text().replace(about, "another", 1))
    assert read_notes(tmp_path, HOLDER) is None


def test_torn_notes_are_not_whole(tmp_path: Path) -> None:
    be_killed(tmp_path)
    path = tmp_path / FOLDER / HOLDER
    path.write_text(path.read_text()[:-5])
    noted = read_notes(tmp_path, HOLDER)
    assert noted is not None
    assert (noted.whole, len(noted.started), noted.results) == (False, 2, {})
    assert not never_started(noted, UNHEARD_OF)


@pytest.mark.parametrize("text", ["", "{}\n", "no json\n", "[1]\n"])
def test_unreadable_notes_are_ignored(tmp_path: Path, text: str) -> None:
    be_killed(tmp_path)
    (tmp_path / FOLDER / HOLDER).write_text(text)
    assert read_notes(tmp_path, HOLDER) is None


async def test_await_notes_until_a_live_worker_notes_the_end(tmp_path: Path) -> None:
    begun = BEGUN.model_copy(update={"holder": HOLDER})
    with keeping_notes(tmp_path, HOLDER):
        hearing = asyncio.create_task(await_notes(tmp_path, [begun], 60_000))
        done, _ = await asyncio.wait((hearing,), timeout=0)
        assert not done
        kept = find_notes(HOLDER)
        assert kept is not None
        kept.note_end(1, begun.idempotency_key, RESULT)
        noted = (await asyncio.wait_for(hearing, 20))[HOLDER]
        assert noted is not None
        assert noted_result(noted, begun) == RESULT


def test_await_notes_ends_when_the_worker_is_killed(tmp_path: Path) -> None:
    begun = BEGUN.model_copy(update={"holder": HOLDER})
    keeps, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        with keeping_notes(tmp_path, HOLDER):
            os.write(write_end, b".")
            signal.pause()
    os.read(keeps, 1)

    async def hear() -> Noted | None:
        hearing = asyncio.create_task(await_notes(tmp_path, [begun], 60_000))
        await asyncio.wait((hearing,), timeout=0)
        os.kill(child, signal.SIGKILL)
        return (await asyncio.wait_for(hearing, 20))[HOLDER]

    noted = asyncio.run(hear())
    os.waitpid(child, 0)
    assert noted is not None
    assert never_started(noted, begun)


@pytest.mark.parametrize(
    ("changes", "patience_ms"),
    [({"idempotent": True}, 60_000), ({"result": RESULT}, 60_000), ({"holder": "elsewhere:1.abcd"}, 60_000), ({}, 0)],
    ids=["may run again", "is known", "is elsewhere", "takes too long"],
)
async def test_await_notes_does_not_wait(tmp_path: Path, changes: dict[str, object], patience_ms: int) -> None:
    begun = BEGUN.model_copy(update={"holder": HOLDER, **changes})
    with keeping_notes(tmp_path, HOLDER):
        noted = await asyncio.wait_for(await_notes(tmp_path, [begun], patience_ms), 20)
    assert [*noted] == [begun.holder]


def test_notes_that_cannot_be_written_are_removed(tmp_path: Path) -> None:
    with keeping_notes(tmp_path, HOLDER):
        kept = find_notes(HOLDER)
        assert kept is not None
        with open(os.devnull, "rb") as nowhere:
            os.dup2(nowhere.fileno(), kept._file)
        kept.note_start(1, BEGUN.idempotency_key)
        assert not (tmp_path / FOLDER / HOLDER).exists()


def test_worker_without_a_writable_folder_drives_runs(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file where the folder should be")
    with keeping_notes(tmp_path, HOLDER):
        assert find_notes(HOLDER) is None


def test_large_result_is_not_noted(tmp_path: Path) -> None:
    large = RESULT.model_copy(update={"output": "x" * 100_000})

    def end_large() -> None:
        kept = find_notes(HOLDER)
        assert kept is not None
        kept.note_end(1, BEGUN.idempotency_key, large)

    be_killed(tmp_path, end_large)
    noted = read_notes(tmp_path, HOLDER)
    assert noted is not None
    assert noted_result(noted, BEGUN) is None


def test_old_notes_are_deleted(tmp_path: Path) -> None:
    be_killed(tmp_path)
    os.utime(tmp_path / FOLDER / HOLDER, (0, 0))
    with keeping_notes(tmp_path, "another"):
        assert [one.name for one in (tmp_path / FOLDER).iterdir()] == ["another"]
