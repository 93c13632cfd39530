"""The only access to the machine's clock and random numbers. The desk uses the store server's TIME instead."""

import os
import secrets
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def now_ms() -> int:
    """Return the wall clock in whole milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def thread_ms() -> float:
    """Return the processor time of this thread in milliseconds; only differences have a meaning."""
    return time.thread_time() * 1000


def monotonic_ms() -> float:
    """Return a monotonic clock in milliseconds, for latencies."""
    return time.perf_counter_ns() / 1_000_000


def uptime_ms() -> int:
    """Return the uptime of this machine in milliseconds, with sleep. Nobody can set this clock."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


def boot_id() -> str:
    """Return the id of this machine's boot, or an empty string where there is none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def new_id(prefix: str) -> str:
    """Return a new sortable id such as `run_0199c0ffee01…`: 48 bits of time, then 80 bits of randomness."""
    return f"{prefix}_{now_ms():012x}{os.urandom(10).hex()}"


def new_secret() -> str:
    """Return 256 random bits as 64 hex digits, for keys and sessions."""
    return os.urandom(32).hex()


def new_code(alphabet: str, length: int) -> str:
    """Return random characters of the alphabet, for codes that people type."""
    return "".join(secrets.choice(alphabet) for _ in range(length))


def new_number() -> str:
    """Return two random digits, for the approval of an item. Attempts to guess them are limited."""
    return new_code("0123456789", 2)


def iso_utc(at_ms: int) -> str:
    """Write a moment as RFC 3339 in UTC with milliseconds, such as `2026-11-21T12:03:04.120Z`."""
    minute, rest_ms = divmod(at_ms, 60_000)
    return f"{_write_minute(minute)}:{rest_ms / 1000:06.3f}Z"


@lru_cache(maxsize=64)
def _write_minute(minute: int) -> str:
    """Cached: formatting a date is slow, and most moments are close together."""
    return datetime.fromtimestamp(minute * 60, tz=UTC).isoformat()[:16]


def new_uuid() -> str:
    """Return a new random UUID in its usual form."""
    return str(uuid.uuid4())
