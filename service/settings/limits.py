"""Settings that bound what one client, one key and one tenant may take from the service."""

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

MOST = 10_000_000  # the highest value of a count: as good as no limit
_Count = Annotated[int, Field(ge=1, le=MOST)]


class LimitSettings(BaseSettings):
    """Limits on connections and requests; a part of `Settings`."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    keep_alive_s: int = Field(default=75, ge=1, le=3_600)
    """Seconds after which an idle connection is closed. Keep it above the idle time of your load balancer and clients,
    so that they close first and no request meets a closing connection."""
    request_timeout_s: int = Field(default=10, ge=1, le=300)
    """Seconds in which a request's line and headers must arrive, and the body at 1 kB/s or faster from then on. A
    slower connection is closed."""
    pending_per_key: _Count = 200
    """Items that one agent's keys may have waiting for people at the same time; a run that a worker has counts as one.
    What goes beyond is answered with 429."""
    pending_limit: _Count = 2_000
    """The same for all agents together."""
    asks_per_minute_per_key: _Count = 600
    """How often in a minute one agent's keys may have calls judged or start runs. Sooner is answered with 429."""
    asks_per_minute: _Count = 6_000
    """The same for all agents together."""
    backlog_runs: _Count = 1_000
    """Runs that may be ready and wait for a worker. While there are more, requests that workers execute are answered
    with 429; decisions are always taken."""
    backlog_s: _Count = 5
    """Seconds that the first of them may wait, if there are more than one worker drives at once
    (`SAYSO_DRAIN_CONCURRENCY`)."""
    waits_per_key: _Count = 1_000
    """Long polls and event streams that one key, or one person, may hold at the same time on one service process. One
    more is answered with 429."""
    attachment_limit_bytes: int = Field(default=1_048_576, ge=1_024, le=8 * 1024 * 1024)
    """Largest file that can be attached to an item, in bytes."""
    attachments_per_item: int = Field(default=10, ge=1, le=100)
    """Most files attached to one item."""
    attachments_limit_bytes: int = Field(default=256 * 1024 * 1024, ge=1_024, le=1024**4)
    """Most bytes of all attached files together. The store keeps them in its memory."""
    attachments_per_key_bytes: int = Field(default=64 * 1024 * 1024, ge=1_024, le=1024**4)
    """Most bytes of the files that one key, all keys of one agent, or one person attached."""
    head_limit_bytes: int = Field(default=32_768, ge=4_096, le=1_048_576)
    """Largest request line and headers together, in bytes."""


_PENDING, _PACES = ("pending_per_key", "pending_limit"), ("asks_per_minute_per_key", "asks_per_minute")
COUNTS = (*_PENDING, *_PACES, "backlog_runs", "backlog_s", "waits_per_key")
# Environment of a load test: one key asks for everything there.
UNLIMITED = {f"SAYSO_{name.upper()}": str(MOST) for name in COUNTS}
