"""Signing secrets with an end, so that two are valid while one is being replaced."""

from collections.abc import Sequence

from sayso.core.records.base import Immutable

MOST_SECRETS = 3
"""The most secrets of one endpoint or sender. A rotation ends the oldest one beyond."""


class TimedSecret(Immutable):
    """A secret, and when it ends; None for the current one."""

    secret: str
    ends_at_ms: int | None = None


def list_valid(secrets: Sequence[TimedSecret], now_ms: int) -> list[str]:
    """Return the secrets that have not ended, the newest first."""
    return [secret.secret for secret in secrets if secret.ends_at_ms is None or now_ms < secret.ends_at_ms]


def rotate(secrets: Sequence[TimedSecret], new: str, now_ms: int, overlap_s: int) -> tuple[TimedSecret, ...]:
    """Return the secrets with a new one first; the others end after the overlap, or earlier."""
    ends_at_ms = now_ms + overlap_s * 1000
    kept = (
        secret.model_copy(update={"ends_at_ms": min(secret.ends_at_ms or ends_at_ms, ends_at_ms)})
        for secret in secrets
        if secret.ends_at_ms is None or now_ms < secret.ends_at_ms
    )
    ending = [secret for secret in kept if secret.ends_at_ms is None or secret.ends_at_ms > now_ms]
    return (TimedSecret(secret=new), *ending)[:MOST_SECRETS]
