"""How long to wait before a message is sent again."""

from contextlib import suppress
from email.utils import parsedate_to_datetime
from hashlib import sha256

from sayso.core.clock import DAY_MS, HOUR_MS
from service.delivery.http import Answer

FIRST_RETRY_MS = 2_000
LONGEST_RETRY_MS = HOUR_MS
EVENT_WAITS_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 64_800, 79_200)
"""The waits after each attempt at an event: ten attempts within three days."""

EVENTS_RETRY_FOR_MS = 3 * DAY_MS
LONGEST_ASKED_MS = DAY_MS
"""The longest wait that a receiver can request."""

_RETRY_LATER = (429, 503)


def retry_after_ms(event_id: str, tries: int) -> int:
    """Return the wait after so many tries: it doubles each time up to an hour, and is reduced by up to a half.

    The reduction differs by message and try, so that retries do not arrive together.
    """
    longest = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(tries - 1, 30))
    return int(longest * (1 - _throw_dice(event_id, tries) / 2))


def event_retry_after_ms(message_id: str, tries: int) -> int | None:
    """Return the wait after so many attempts at an event, reduced by up to a tenth; None after the last one."""
    if tries > len(EVENT_WAITS_S):
        return None
    return int(EVENT_WAITS_S[tries - 1] * 1000 * (1 - _throw_dice(message_id, tries) / 10))


def read_retry_after_ms(answer: Answer, now_ms: int) -> int:
    """Return the wait that the receiver requests by Retry-After, or 0."""
    header = (answer.retry_after or "").strip()
    if answer.status not in _RETRY_LATER or not header:
        return 0
    if header.isascii() and header.isdigit():
        return int(header[:9]) * 1000
    with suppress(ValueError, TypeError, OverflowError):
        return max(0, int(parsedate_to_datetime(header).timestamp() * 1000) - now_ms)
    return 0


def _throw_dice(message_id: str, tries: int) -> float:
    return int.from_bytes(sha256(f"{message_id} {tries}".encode()).digest()[:4]) / 2**32
