"""Tests of the health checks of programs."""

from redis import Redis

from launch.checks import is_clock_ticking
from launch.programs import START_MISSES, Watch
from sayso.core.clock import now_ms
from sayso.core.records.freezes import ClockReading
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys


def checks(watch: Watch, times: int) -> list[bool]:
    return [watch.check() for _ in range(times)]


def test_check_fails_at_the_last_allowed_miss() -> None:
    works = True
    watch = Watch(lambda: works, misses=3)
    assert watch.check()
    works = False
    assert checks(watch, 3) == [True, True, False]


def test_check_resets_after_a_success() -> None:
    answers = iter([True, False, False, True, False, False, True])
    watch = Watch(lambda: next(answers), misses=3)
    assert all(checks(watch, 7))


def test_check_allows_more_misses_during_the_start() -> None:
    watch = Watch(lambda: False, misses=3)
    assert checks(watch, START_MISSES) == [True] * (START_MISSES - 1) + [False]
    assert checks(watch, START_MISSES) == [True] * (START_MISSES - 1) + [False], "the count restarts with the program"


def test_is_clock_ticking_is_false_after_an_old_tick(clean_store_url: str) -> None:
    assert not is_clock_ticking(clean_store_url)
    with Redis.from_url(clean_store_url) as redis:
        for ago_ms, beats in ((0, True), (60_000, False)):
            beat = ClockReading(at_ms=now_ms() - ago_ms, uptime_ms=1, boot="x", wall_ms=now_ms())
            redis.hset(TenantKeys(TENANT).clock, "beat", beat.model_dump_json())
            assert is_clock_ticking(clean_store_url) == beats


def test_is_clock_ticking_is_true_without_a_store() -> None:
    assert is_clock_ticking("redis://127.0.0.1:1/0")
