"""Tests of threads that inherit the gated run of the code that starts their work."""

import _thread
import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing import dummy
from multiprocessing.pool import Pool, ThreadPool
from typing import Any

import pytest

from sayso.guarding.runs import carry_into_threads, find_refusal, use_gated_run

Work = Callable[[], None]
Start = Callable[[Work], None]


@pytest.fixture(autouse=True)
def carried() -> None:
    carry_into_threads()


def is_refused(_given: Any = None) -> bool:
    return find_refusal("send_money", "payer") is not None


def start_thread(work: Work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def start_subclass(work: Work) -> None:
    class Worker(threading.Thread):
        """A thread with a method of its own."""

        def run(self) -> None:
            work()

    worker = Worker()
    worker.start()
    worker.join()


def start_new_thread(work: Work) -> None:
    ended = threading.Event()

    def run(then: Work, *, before: Work) -> None:
        before()
        then()

    _thread.start_new_thread(run, (ended.set,), {"before": work})
    ended.wait()


def start_timer(work: Work) -> None:
    timer = threading.Timer(0, work)
    timer.start()
    timer.join()


def start_dummy_process(work: Work) -> None:
    process = dummy.Process(target=work)
    process.start()
    process.join()


def start_pool(work: Work) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def start_map(work: Work) -> None:
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda _: work(), [0]))


def start_initializer(work: Work) -> None:
    with ThreadPoolExecutor(1, initializer=work) as pool:
        pool.submit(int).result()


def start_thread_pool(work: Work) -> None:
    with ThreadPool(1) as pool:
        pool.apply(work)


def start_initializer_of_a_thread_pool(work: Work) -> None:
    with ThreadPool(1, work) as pool:
        pool.apply(int)


def start_loop_in_a_thread(work: Work) -> None:
    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work)

    start_thread(lambda: asyncio.run(main()))


STARTS: list[Start] = [
    start_thread,
    start_subclass,
    start_new_thread,
    start_timer,
    start_dummy_process,
    start_pool,
    start_map,
    start_initializer,
    start_thread_pool,
    start_initializer_of_a_thread_pool,
    start_loop_in_a_thread,
]


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


CALLS: dict[str, Callable[[Pool], Any]] = {
    "apply": lambda pool: pool.apply(is_refused),
    "apply_async": lambda pool: pool.apply_async(is_refused, (0,)).get(),
    "by_name": lambda pool: pool.apply_async(func=is_refused).get(),
    "map": lambda pool: pool.map(is_refused, [0])[0],
    "map_async": lambda pool: pool.map_async(is_refused, [0]).get()[0],
    "starmap": lambda pool: pool.starmap(is_refused, [(0,)])[0],
    "starmap_async": lambda pool: pool.starmap_async(is_refused, [(0,)]).get()[0],
    "imap": lambda pool: next(pool.imap(is_refused, [0])),
    "imap_unordered": lambda pool: next(pool.imap_unordered(is_refused, [0])),
    "imap_in_chunks": lambda pool: next(pool.imap(is_refused, [0, 0], 2)),
}


@pytest.mark.parametrize("call", CALLS)
def test_tool_in_an_older_thread_pool_is_refused(call: str) -> None:
    with ThreadPool(1) as pool:
        with use_gated_run("bot"):
            assert CALLS[call](pool)
        assert not CALLS[call](pool)


@pytest.mark.parametrize("call", CALLS)
def test_thread_pool_of_a_gated_run_serves_others_unguarded(call: str) -> None:
    with use_gated_run("bot"):
        pool = ThreadPool(1)
    with pool:
        assert not CALLS[call](pool)
        with use_gated_run("bot"):
            assert CALLS[call](pool)


def test_pool_of_processes_works_in_a_gated_run() -> None:
    with use_gated_run("bot"), Pool(1) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]


async def test_tool_in_another_loop_of_a_gated_run_is_refused() -> None:
    async def ask() -> bool:
        return is_refused()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with closing(loop):
        try:
            with use_gated_run("bot"):
                assert await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), loop))
            assert not await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), loop))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
