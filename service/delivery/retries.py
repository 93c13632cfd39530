"""How long to wait before a message is sent again."""

from contextlib import suppress
from email.utils import parsedate_to_datetime
from hashlib import sha256

from service.delivery.http import Answer

FIRST_RETRY_MS = 2_000
LONGEST_RETRY_MS = 3_600_000
_RETRY_LATER = (429, 503)


def retry_after_ms(event_id: str, tries: int) -> int:
    """Return the wait after so many tries: it doubles each time up to an hour, and is reduced by up to a half.

    The reduction differs by message and try, so that retries do not arrive together.
    """
    longest = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(tries - 1, 30))
    dice = int.from_bytes(sha256(f"{event_id} {tries}".encode()).digest()[:4]) / 2**32
    return int(longest * (1 - dice / 2))


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
