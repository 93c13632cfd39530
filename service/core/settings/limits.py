"""Settings of limits, periods, proxies and webhooks."""

import base64
import re
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, StringConstraints, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from service.core.settings.receivers import InternalReceivers, read_receivers

MOST = 10_000_000  # the highest value of a count: as good as no limit
_Count = Annotated[int, Field(ge=1, le=MOST)]


_MB = 1024 * 1024
COMPANY: Mapping[str, int] = {
    "pending_per_key": 2_000,
    "pending_limit": 20_000,
    "asks_per_minute_per_key": 3_000,
    "asks_per_minute": 30_000,
    "backlog_runs": 10_000,
    "waits_per_key": 5_000,
    "attachments_limit_bytes": 2_048 * _MB,
    "attachments_per_key_bytes": 256 * _MB,
}
"""The limits of the size `company`; those of `team` are the defaults."""


class LimitSettings(BaseSettings, use_attribute_docstrings=True):
    """Limits on connections and requests; a part of `Settings`."""

    size: Literal["team", "company"] = "team"
    """How many use the desk: `team` for about 30 people, `company` for about 300 and 2,000 runs an hour. It sets the
    limits on open items, requests, the backlog, long polls and attachments, each of which can be set by itself."""

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

    @model_validator(mode="before")
    @classmethod
    def _take_size(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Add the limits of the size, unless they are given."""
        return {**COMPANY, **given} if given.get("size") == "company" else given


_PENDING, _PACES = ("pending_per_key", "pending_limit"), ("asks_per_minute_per_key", "asks_per_minute")
COUNTS = (*_PENDING, *_PACES, "backlog_runs", "backlog_s", "waits_per_key")
# Environment of a load test: one key asks for everything there.
UNLIMITED = {f"SAYSO_{name.upper()}": str(MOST) for name in COUNTS}


LONGEST_SESSION_S = 366 * 86_400


class PeriodSettings(BaseSettings, use_attribute_docstrings=True):
    """Worker counts and periods; a part of `Settings`."""

    workers: int = Field(default=2, ge=1, le=64)
    """Number of worker processes that `make up` starts."""
    lease_s: int = Field(default=30, ge=1, le=3600)
    """Seconds a worker holds a run before another may take it up; renewed while it works."""
    drain_window_s: int = Field(default=30, ge=1, le=3600)
    """Longest time in seconds one job goes on taking runs from the ready list."""
    drain_concurrency: int = Field(default=64, ge=1, le=1024)
    """Runs one job drives at the same time."""
    stop_delay_s: int = Field(default=2, ge=0, le=60)
    """Seconds for which a service that stops accepts connections, so that proxies send new ones elsewhere."""
    keep_runs_days: int = Field(default=30, ge=1, le=36_500)
    """Days after its end at which a run's records and state are deleted."""
    keep_trail_days: int = Field(default=365, ge=1, le=36_500)
    """Days after its end at which a run's trail is deleted too: the last that is known of it."""
    keep_calls_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after a run's end at which the contents of its calls are erased; decisions stay. Unset: never."""
    session_idle_s: int = Field(default=7_200, ge=60, le=LONGEST_SESSION_S)
    """Seconds after which a reviewer who did nothing is signed out."""
    session_max_s: int = Field(default=43_200, ge=60, le=LONGEST_SESSION_S)
    """Seconds after which a reviewer signs in again in any case."""

    attention_look_ms: int = Field(default=1_000, ge=100, le=60_000)
    """Look in milliseconds below which an approval counts as instant in the insights."""
    attention_percent: int = Field(default=50, ge=1, le=100)
    """Share of instant approvals in percent from which the insights flag a reviewer, for admins and the reviewer."""
    attention_fewest: int = Field(default=20, ge=5, le=10_000)
    """Measured approvals below which nobody is flagged."""

    @model_validator(mode="after")
    def _check_sessions(self) -> Self:
        if self.session_idle_s > self.session_max_s:
            raise ValueError("SAYSO_SESSION_IDLE_S is above SAYSO_SESSION_MAX_S; make it the smaller one")
        return self

    @model_validator(mode="after")
    def _check_retention(self) -> Self:
        if self.keep_trail_days < self.keep_runs_days:
            raise ValueError("SAYSO_KEEP_TRAIL_DAYS is below SAYSO_KEEP_RUNS_DAYS; a trail is kept as long as its run")
        if self.keep_calls_days is not None and self.keep_calls_days >= self.keep_trail_days:
            raise ValueError(
                "SAYSO_KEEP_CALLS_DAYS is not below SAYSO_KEEP_TRAIL_DAYS, when the last of a call is deleted anyway; "
                "lower it, or leave it out"
            )
        return self


_HOST = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*")
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})


SPLIT = BeforeValidator(
    lambda value: tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value
)
Words = Annotated[tuple[str, ...], NoDecode, SPLIT]  # a setting written as words with commas between them


TENANT = "default"
"""The tenant of a desk that names none."""

TenantName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class EdgeSettings(BaseSettings, use_attribute_docstrings=True):
    """Tenants, trusted proxies and allowed hosts."""

    tenant: TenantName = TENANT
    """The tenant of this process, where `SAYSO_TENANTS` names several. A worker and a clock serve one each."""
    tenants: Path | None = None
    """YAML file with the tenants that share the service: their hosts, rules, channels and store. Without it there is
    one."""
    trusted_proxies: Words = ()
    """Addresses and networks of reverse proxies, such as `10.0.0.5,10.1.0.0/16`. Only their `X-Forwarded-For` and
    `X-Forwarded-Proto` count. Empty: none count."""
    allowed_hosts: Words = ()
    """Hosts beside that of `SAYSO_PUBLIC_URL` under which people may sign in and open pages, with commas between them.
    In the `local` environment this machine's own names are allowed too."""

    @field_validator("trusted_proxies", mode="after")
    @classmethod
    def _check_proxies(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                network = ip_network(proxy)
            except ValueError:
                raise ValueError(f"'{proxy}' is not an address or network; write 10.0.0.5 or 10.1.0.0/16") from None
            if not network.prefixlen:
                raise ValueError(f"'{proxy}' lets every client choose its address; name the proxies only")
        return proxies

    @field_validator("allowed_hosts", mode="after")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        lowered = tuple(host.lower() for host in hosts)
        for host in lowered:
            if not _HOST.fullmatch(host):
                raise ValueError(
                    f"'{host}' is not a host; write a name such as desk.example.com, without port or scheme"
                )
        return lowered


def network_of(address: str) -> str:
    """Return the key by which limits count an address: the IPv4 address, or the /64 network of an IPv6 client."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))
    return str(ip)


WEAKEST_WEBHOOK_SECRET_BYTES = 24


class WebhookSettings(BaseSettings, use_attribute_docstrings=True):
    """Secrets and receivers of webhooks; a part of `Settings`."""

    webhook_secret: Annotated[tuple[SecretStr, ...], NoDecode, SPLIT] = ()
    """Secrets (`whsec_…`) that sign decisions sent to `/hooks/decisions`; several with commas while rotating. Without
    one that address is closed. Prefer senders, each with its own secret."""
    aap_allow_loopback: bool = False
    """Let webhook endpoints and receivers of the Agent Approval Protocol be on this very machine, for tests. Refused in
    production."""
    internal_receivers: Words = ()
    """Hosts and networks of your own to which webhooks, assessors and messages of the Agent Approval Protocol may be
    sent, such as `n8n:5678,10.1.0.0/16`; without a port, every port. `http` is allowed to them. Empty: none."""

    egress_proxy: str | None = Field(default=None, repr=False)
    """Proxy for what leaves over http(s), such as `http://proxy:3128`: webhooks, channels, assessors and identity
    providers. It resolves the names, so it must refuse private addresses. Internal receivers are reached without it."""

    @field_validator("egress_proxy", mode="after")
    @classmethod
    def _check_egress_proxy(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            usable = parts.scheme == "http" and parts.hostname and parts.port and not f"{parts.path}{parts.query}"
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("this is no proxy; write http://proxy:3128, or http://user:password@proxy:3128")
        return url

    @property
    def receivers(self) -> InternalReceivers:
        return read_receivers(self.internal_receivers)

    @field_validator("internal_receivers", mode="after")
    @classmethod
    def _check_receivers(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        read_receivers(words)
        return words

    @field_validator("webhook_secret", mode="after")
    @classmethod
    def _check_webhook_secrets(cls, secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for secret in (wrapped.get_secret_value() for wrapped in secrets):
            try:
                key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
            except ValueError:
                key = b""
            if not secret.startswith("whsec_") or len(key) < WEAKEST_WEBHOOK_SECRET_BYTES:
                raise ValueError(
                    f"write whsec_ and then at least {WEAKEST_WEBHOOK_SECRET_BYTES} random bytes in base64"
                )
        return secrets
