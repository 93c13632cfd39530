"""Tests of the guard of gated runs: what it refuses, and in which threads."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sayso.guarding import (
    UnseenTool,
    admit,
    carry_into_threads,
    find_refusal,
    note_gated,
    refuse_unseen,
    use_gated_call,
    use_gated_run,
    was_gated,
)

Start = Callable[[Callable[[], None]], None]


@pytest.fixture(autouse=True)
def carried() -> None:
    carry_into_threads()


def is_refused() -> bool:
    return find_refusal("send_money", "payer") is not None


def start_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def start_subclass(work: Callable[[], None]) -> None:
    class Worker(threading.Thread):
        """A thread with a method of its own."""

        def run(self) -> None:
            work()

    worker = Worker()
    worker.start()
    worker.join()


def start_timer(work: Callable[[], None]) -> None:
    timer = threading.Timer(0, work)
    timer.start()
    timer.join()


def start_pool(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def start_map(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda _: work(), [0]))


def start_loop_in_a_thread(work: Callable[[], None]) -> None:
    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work)

    start_thread(lambda: asyncio.run(main()))


STARTS: list[Start] = [start_thread, start_subclass, start_timer, start_pool, start_map, start_loop_in_a_thread]


@pytest.mark.parametrize("start", STARTS, ids=lambda one: one.__name__)
def test_tool_in_a_thread_of_a_gated_run_is_refused(start: Start) -> None:
    seen: list[bool] = []
    with use_gated_run("bot"):
        start(lambda: seen.append(is_refused()))
    start(lambda: seen.append(is_refused()))
    assert seen == [True, False]


def test_pool_that_a_gated_run_starts_serves_others_unguarded() -> None:
    with ThreadPoolExecutor(1) as pool:
        with use_gated_run("bot"):
            assert pool.submit(is_refused).result()
        assert not pool.submit(is_refused).result()
        with use_gated_run("bot"):
            assert pool.submit(is_refused).result()


async def test_tool_in_another_loop_of_a_gated_run_is_refused() -> None:
    async def ask() -> bool:
        return is_refused()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        with use_gated_run("bot"):
            assert await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), loop))
        assert not await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), loop))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_tool_outside_of_gated_runs_starts() -> None:
    refuse_unseen("send_money", "payer")


def test_refusal_names_tool_agent_and_gated_call() -> None:
    with use_gated_run("bot"), pytest.raises(UnseenTool) as refused, use_gated_call("delegate"):
        refuse_unseen("send_money", "payer")
    message = refused.value.message
    assert message.startswith("send_money was called inside delegate without review, so it did not run.")
    assert "the agent 'payer', which no gate has seen" in message
    assert "Give its tools to the gated agent 'bot'" in message


def test_refusal_outside_of_a_call_names_the_run() -> None:
    with use_gated_run("bot"), pytest.raises(UnseenTool, match="inside the run of the gated agent 'bot'"):
        refuse_unseen("send_money", None)


def test_call_fails_although_its_tool_hid_the_refusal() -> None:
    with use_gated_call("delegate") as running:
        assert find_refusal("send_money", "payer")
    with pytest.raises(UnseenTool, match="send_money was called inside delegate"):
        running.check()


def test_call_fails_with_the_refusal_instead_of_its_own_error() -> None:
    def run() -> None:
        assert is_refused()
        raise KeyError("no result")

    with pytest.raises(UnseenTool, match="send_money was called inside delegate"), use_gated_call("delegate"):
        run()


def test_admitted_tool_starts_once() -> None:
    with use_gated_call("delegate"), admit():
        assert not is_refused()
        assert is_refused()


def test_admission_does_not_reach_into_a_gated_call() -> None:
    with admit(), use_gated_run("bot"):
        assert is_refused()
        with admit(), use_gated_call("delegate"):
            assert is_refused()


def test_noted_functions_and_methods_were_gated() -> None:
    def send() -> None: ...

    assert not was_gated(send)
    assert was_gated(note_gated(send))
    assert was_gated(type("Bank", (), {"send": send})().send)
    assert not was_gated(None)
