"""A worker finds a state that it saved by its digest, and reads every other from the store."""

import pytest

from sayso.core.records.run_state import SealedState, seal_state
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from service.core.wiring import Wiring
from tests.sayso.samples import draft
from tests.workers.runs import start
from workers.resume import journals
from workers.resume.journals import RunStates

BIG = seal_state(b'{"text":"' + b"x" * 5_000 + b'"}')


def record_of(sealed: SealedState) -> SuspensionRecord:
    return draft(state=sealed.ref, run=RunRef(id="run_x", agent="a", owner="bot", thread_id="t"))


def number(count: int) -> SealedState:
    return seal_state(b'{"n":%d}' % count)


async def test_kept_state_is_found_without_the_store(wiring: Wiring) -> None:
    states = RunStates(wiring.runs)
    states.keep(BIG)
    found = await states.read(record_of(BIG))
    assert (found.ref, found.raw) == (BIG.ref, b'{"text":"' + b"x" * 5_000 + b'"}')


async def test_state_of_another_process_is_read_from_the_store(wiring: Wiring) -> None:
    await start(wiring)
    saved = await wiring.desk.suspensions.read((await wiring.runs.read("run_x")).suspension_id)
    states = RunStates(wiring.runs)
    states.keep(BIG)
    assert states.find(saved.record) is None
    found = await states.read(saved.record)
    assert b'"run_id":"run_x"' in found.raw
    assert await states.try_read(saved.record) == found


async def test_state_that_does_not_match_is_not_read(wiring: Wiring) -> None:
    await start(wiring)
    assert await RunStates(wiring.runs).try_read(record_of(BIG)) is None


def test_oldest_states_make_room(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "_MOST", 2)
    states = RunStates(wiring.runs)
    for count in (1, 2, 1, 3):
        states.keep(number(count))
    assert [states.find(record_of(number(count))) is not None for count in (1, 2, 3)] == [True, False, True]
    monkeypatch.setattr(journals, "_MOST_BYTES", len(BIG.blob) + 8)
    states.keep(BIG)
    assert [states.find(record_of(one)) is not None for one in (number(1), number(3), BIG)] == [False, True, True]
