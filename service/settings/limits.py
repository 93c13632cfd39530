"""Settings that bound what one client, one key and one tenant may take from the service."""

from pydantic import Field
from pydantic_settings import BaseSettings

MOST = 10_000_000  # the highest value of a count: as good as no limit


class LimitSettings(BaseSettings):
    """Limits on connections and requests; a part of `Settings`."""

    keep_alive_s: int = Field(
        default=75,
        ge=1,
        le=3_600,
        description="Seconds after which an idle connection is closed. Keep it above the idle time of your load "
        "balancer and clients, so that they close first and no request meets a closing connection.",
    )
    request_timeout_s: int = Field(
        default=10,
        ge=1,
        le=300,
        description="Seconds in which a request's line and headers must arrive, and the body at 1 kB/s or faster "
        "from then on. A slower connection is closed.",
    )
    pending_per_key: int = Field(
        default=200,
        ge=1,
        le=MOST,
        description="Items that one agent's keys may have waiting for people at the same time; a run that a worker has "
        "counts as one. What goes beyond is answered with 429.",
    )
    pending_limit: int = Field(default=2_000, ge=1, le=MOST, description="The same for all agents together.")
    asks_per_minute_per_key: int = Field(
        default=600,
        ge=1,
        le=MOST,
        description="How often in a minute one agent's keys may have calls judged or start runs. Sooner is answered "
        "with 429.",
    )
    asks_per_minute: int = Field(default=6_000, ge=1, le=MOST, description="The same for all agents together.")
    waits_per_key: int = Field(
        default=1_000,
        ge=1,
        le=MOST,
        description="Long polls and event streams that one key, or one person, may hold at the same time on one "
        "service process. One more is answered with 429.",
    )
    head_limit_bytes: int = Field(
        default=32_768, ge=4_096, le=1_048_576, description="Largest request line and headers together, in bytes."
    )


COUNTS = ("pending_per_key", "pending_limit", "asks_per_minute_per_key", "asks_per_minute", "waits_per_key")
UNLIMITED = {f"SAYSO_{name.upper()}": str(MOST) for name in COUNTS}
"""Environment of a load test: one key asks for everything there."""
