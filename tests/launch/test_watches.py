"""A program is restarted when it misses several checks in a row, and has more time while it starts."""

from redis import Redis

from launch.checks import clock_beats
from launch.watches import START_MISSES, Watch
from sayso.clock import now_ms
from sayso.transitions.clock_jumps import ClockReading
from service.auth.credentials import TENANT
from service.store.keys import TenantKeys


def checks(watch: Watch, times: int) -> list[bool]:
    return [watch.check() for _ in range(times)]


def test_a_program_is_restarted_at_the_last_of_its_misses() -> None:
    works = True
    watch = Watch(lambda: works, misses=3)
    assert watch.check()
    works = False
    assert checks(watch, 3) == [True, True, False]


def test_a_program_that_answers_in_between_is_left_alone() -> None:
    answers = iter([True, False, False, True, False, False, True])
    watch = Watch(lambda: next(answers), misses=3)
    assert all(checks(watch, 7))


def test_a_program_that_starts_may_miss_more_checks() -> None:
    watch = Watch(lambda: False, misses=3)
    assert checks(watch, START_MISSES) == [True] * (START_MISSES - 1) + [False]
    assert checks(watch, START_MISSES) == [True] * (START_MISSES - 1) + [False], "it counts anew after a restart"


def test_a_clock_that_stopped_beating_is_noticed(clean_store_url: str) -> None:
    assert not clock_beats(clean_store_url)
    with Redis.from_url(clean_store_url) as redis:
        for ago_ms, beats in ((0, True), (60_000, False)):
            beat = ClockReading(at_ms=now_ms() - ago_ms, uptime_ms=1, boot="x", wall_ms=now_ms())
            redis.hset(TenantKeys(TENANT).clock, "beat", beat.model_dump_json())
            assert clock_beats(clean_store_url) == beats


def test_a_store_that_is_away_is_not_the_clocks_fault() -> None:
    assert clock_beats("redis://127.0.0.1:1/0")
