"""The settings of Sayso, read once from the environment, and the addresses and paths that follow from them."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote, urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from sayso.core.records.terms import UNDO_PATTERN
from sayso.errors import InvalidInput
from service.core.settings.evidence import EvidenceSettings
from service.core.settings.limits import EdgeSettings, LimitSettings, PeriodSettings, WebhookSettings, Words
from service.core.settings.secrets import FILED, file_variable_of, read_files
from service.core.settings.stores import check_port, check_store_url, find_exposure, name_tenant, read_cluster
from service.core.settings.telemetry import TelemetrySettings

FILES = ("policy", "channels", "drills", "assessors", "token_issuers", "sign_in")
"""The settings that name files of a tenant."""

PREFIX = "SAYSO_"
_EARLIER_KEY = "SAYSO_AGENT_KEY"  # the name of SAYSO_KEY in 0.1.0
LAUNCHED_FROM = "SAYSO_LAUNCHED_FROM"
"""The launcher's mark on the programs that it starts."""

OTHERS = ("SAYSO_URL", LAUNCHED_FROM, "SAYSO_BENCH_STAMPS")
"""Variables that are no settings of the service: the SDK's address, the launcher's mark, and the benchmark's."""


LONGEST_SOCKET_PATH_BYTES = 92
"""Unix socket paths end at 104 bytes on some systems and 108 on others, and the supervisor appends a process id while
it creates its own. A longer home gets a short folder instead."""

PORTS = {"http": 80, "https": 443}
"""The ports of addresses that name none."""

EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound


def reached_at(host: str) -> str:
    """Return the address at which this machine reaches a server that listens on this host."""
    address = EVERY_ADDRESS.get(host, host)
    return f"[{address}]" if ":" in address else address


def store_url_at(socket: Path) -> str:
    """Return the URL of a store that listens on this socket."""
    return f"unix://{quote(str(socket))}?db=0"


def socket_path(home: Path, name: str = "store.sock") -> Path:
    """Return the path of a socket of this home: in it, or in a short folder where that path is too long."""
    inside = home / name
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH_BYTES:
        return inside
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"sayso-{os.getuid()}-{digest}" / name


# The folder that holds `service/`; relative defaults start here, not in the working directory.
CHECKOUT = Path(__file__).resolve().parents[3]
IS_INSTALLED = CHECKOUT.parent.name == "sayso_server"
"""Whether the programs lie in the installed package `sayso-server` and not in a checkout."""

SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1024
SHORTEST_KEY = 16
WEAKEST_IN_PRODUCTION = {"admin_password": 12, "key": 32, "metrics_token": 32}


def _find_home() -> Path:
    if not IS_INSTALLED:
        return CHECKOUT / ".sayso"
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "sayso"


class InvalidSettings(InvalidInput):
    """The settings are invalid; correct them and start again."""


class Settings(EvidenceSettings, TelemetrySettings, WebhookSettings, PeriodSettings, LimitSettings, EdgeSettings):
    """All settings, immutable."""

    model_config = SettingsConfigDict(
        env_prefix="SAYSO_", env_ignore_empty=True, frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    env: Literal["local", "production"] = "local"
    """`production` refuses what only fits your own machine: plain http, short secrets, weak durability."""
    environment: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$|^$")
    """Name of this installation for rules, such as `staging`; conditions read it as `run.environment`. Without it, it
    is unknown."""
    home: Path = Field(default_factory=_find_home)
    """Folder of all data: the store's files, sockets and logs. Kept between starts."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """Address the service listens on; `0.0.0.0` for every one."""
    port: int = Field(default=8321, ge=1, le=65534)
    """Port the service listens on. The demo's model endpoint takes the next one."""
    public_url: str = Field(default_factory=lambda data: f"http://{reached_at(data['host'])}:{data['port']}")
    """Address at which browsers and agents reach the service, used in links and origin checks. With `https` the session
    cookie is `Secure` and named `__Host-…`."""
    admin_password: SecretStr | None = Field(default=None, min_length=1)
    """Password of the reviewer `admin`, set at every start. Without it one is made at the first start and printed
    once."""
    key: SecretStr | None = Field(default=None, min_length=1)
    """Known API key for the agent named `demo`. Without it one is made and printed once."""
    redis_url: str | None = Field(
        default=None, repr=False, validation_alias=AliasChoices("SAYSO_REDIS_URL", "REDIS_URL", "redis_url")
    )
    """Redis or Valkey to use: `redis://`, `rediss://` or `unix://`, or `redis+sentinel://host:port,host:port/name` for
    the primary that sentinels name, or `redis+cluster://host:port,host:port` for a cluster; plain `REDIS_URL` works
    too. Without it `make up` starts its own server on a socket in the home."""
    queue_url: str | None = Field(default=None, repr=False)
    """Small Redis or Valkey for the queue of jobs (RQ), which cannot use a cluster; required with one. What it loses is
    put there again. Without it the queue is in the store."""
    allow_weak_durability: bool = False
    """Start even if the store may lose confirmed writes: no append-only file, or not synced at once."""
    store_durability: Literal["checked", "stated"] = "checked"
    """`stated` if a managed store refuses `CONFIG GET`, and you state that it keeps every confirmed write;
    `sayso doctor` and `/operate` show that it was stated, not checked."""
    replicas: int = Field(default=0, ge=0, le=9)
    """How many replicas must have a change before it is confirmed, so that a fail-over loses none. The store needs
    `min-replicas-to-write` of as many."""
    allow_plain_store: bool = False
    """Start in production though the store is on another machine and its URL has no password or no TLS: only where the
    network between is yours alone."""
    agents: Words = ("demo.agents:support",)
    """Agents that can be run: import paths such as `demo.agents:support`, with commas between them."""
    policy: Path = CHECKOUT / "demo" / "policy.yaml"
    """YAML file with the rules that judge every tool call."""
    policy_attestations: int = Field(default=0, ge=0, le=2)
    """How many admins or rule authors must attest the exact bytes of a file of rules before it takes force."""
    undo: str | None = Field(default=None, pattern=UNDO_PATTERN)
    """Time in which a reviewer can undo a decision before it takes effect, `1s` to `60s`, where no rule states one.
    Without it, decisions take effect at once."""
    channels: Path | None = None
    """YAML file with the channels over which reviewers are asked, and their secrets. Without it nobody is notified."""
    drills: Path | None = None
    """YAML file with templates of false calls that test whether reviewers look, and how often one is planted.
    Without it there are no drills."""
    assessors: Path | None = None
    """YAML file with the assessors that rules name: servers or functions that may add scrutiny to calls. A rule whose
    assessor is missing takes its calls for high."""
    token_issuers: Path | None = None
    """YAML file with the issuers whose signed tokens say for which person an agent acts. Without it tokens are
    refused."""
    sign_in: Path | None = None
    """YAML file with the identity providers (OpenID Connect) with which people sign in, and whether passwords count.
    Without it people sign in with passwords."""
    body_limit_bytes: int = Field(default=262_144, ge=1_024, le=16 * 1024 * 1024)
    """Largest request body in bytes. Before a sign-in, a key or a signature is known it is 16 kB."""
    state_limit_bytes: int = Field(default=4 * 1024 * 1024, ge=1_024, le=8 * 1024 * 1024)
    """Largest state in bytes of a suspended run of another framework."""
    model_url: str = Field(default_factory=lambda data: _demo_model_url(data["host"], data["port"]))
    """Base URL of the chat-completions API the demo agent talks to. While it is the default, `make up` starts a small
    local endpoint there."""
    model_name: str = Field(default="demo", min_length=1)
    """Model the demo agent asks for."""
    model_key: SecretStr | None = Field(default=None, min_length=1)
    """API key for the model endpoint, if it wants one."""
    metrics_token: SecretStr | None = Field(default=None, min_length=1)
    """Token with which Prometheus reads `/metrics`. Without it that address is closed."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least important kind of log line that is written."""

    @model_validator(mode="after")
    def _check_archive_days(self) -> Self:
        if self.archive is not None and self.hot_days >= self.keep_trail_days:
            raise ValueError("SAYSO_HOT_DAYS is not below SAYSO_KEEP_TRAIL_DAYS, when a run is deleted; lower it")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment alone; no files are named, and asking for them takes as long again."""
        del settings_cls, dotenv_settings, file_secret_settings
        return init_settings, env_settings

    @field_validator("home", "tenants", *FILES, mode="after")
    @classmethod
    def _make_absolute(cls, path: Path | None) -> Path | None:
        try:
            return path and path.expanduser().resolve()
        except RuntimeError:
            raise ValueError(f"{path} begins with the home of an unknown user; write the whole path") from None

    @field_validator("agents", mode="after")
    @classmethod
    def _check_agents(cls, agents: tuple[str, ...]) -> tuple[str, ...]:
        for agent in agents:
            if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", agent):
                raise ValueError(f"'{agent}' is not an import path; write package.module:name")
        return agents

    @field_validator("key", "metrics_token", mode="after")
    @classmethod
    def _check_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not re.fullmatch(r"[!-~]+", key.get_secret_value()):
            raise ValueError("the key travels in an HTTP header; use printable ASCII without spaces")
        if _is_short(key, SHORTEST_KEY):
            raise ValueError(f"a key has at least {SHORTEST_KEY} characters; choose a longer, random one")
        return key

    @field_validator("admin_password", mode="after")
    @classmethod
    def _check_admin_password(cls, password: SecretStr | None) -> SecretStr | None:
        if password is not None and not SHORTEST_PASSWORD <= len(password.get_secret_value()) <= LONGEST_PASSWORD:
            raise ValueError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters; choose another")
        return password

    @field_validator("redis_url", "queue_url", mode="after")
    @classmethod
    def _check_redis_url(cls, url: str | None) -> str | None:
        if url is not None:
            check_store_url(url)
        return url

    @model_validator(mode="after")
    def _check_queue_url(self) -> Self:
        if self.queue_url is None and read_cluster(self.store_url) is not None:
            raise ValueError("SAYSO_REDIS_URL is a cluster, which RQ cannot use; set SAYSO_QUEUE_URL to a small store")
        if self.queue_url is not None and read_cluster(self.queue_url) is not None:
            raise ValueError("SAYSO_QUEUE_URL is a cluster, which RQ cannot use; set it to a store of one primary")
        return self

    @field_validator("public_url", "model_url", mode="after")
    @classmethod
    def _check_web_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is not a web address; write http://host:port or https://host")
        check_port(parts)
        return url.rstrip("/")

    @field_validator("public_url", mode="after")
    @classmethod
    def _check_public_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.path or parts.query or parts.fragment or re.search(r"\s", url):
            raise ValueError(
                "Sayso has a host of its own, so give nothing beside it; write http://host:port or https://host"
            )
        return f"{parts.scheme}://{parts.netloc.lower()}"

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_production(self) -> Self:
        if self.env == "production" and (faults := tuple(_production_faults(self))):
            raise ValueError("SAYSO_ENV=production needs more care: " + "; ".join(faults))
        return self

    @property
    def store_url(self) -> str:
        """The URL of the tenant's store: the given one, or the socket of the embedded server."""
        return name_tenant(self.redis_url or store_url_at(socket_path(self.home)), self.tenant)

    @property
    def jobs_url(self) -> str:
        """The URL of the store of RQ's keys."""
        return self.queue_url or self.store_url

    @property
    def states_durability(self) -> bool:
        return self.store_durability == "stated"

    @property
    def secure_cookies(self) -> bool:
        return self.public_url.startswith("https://")

    @property
    def demo_model_port(self) -> int:
        return self.port + 1

    @property
    def runs_demo_model(self) -> bool:
        return self.model_url == _demo_model_url(self.host, self.port)


def load() -> Settings:
    """Return the settings; raises `InvalidSettings`, also for an unknown variable in production or one letter off."""
    if earlier := os.environ.pop(_EARLIER_KEY, None):
        os.environ.setdefault("SAYSO_KEY", earlier)
    if faults := read_files(os.environ):
        raise InvalidSettings("\n".join(faults))
    unknown = list_unknown()
    try:
        settings = Settings()
    except ValidationError as error:
        lines = []
        for fault in error.errors(include_url=False, include_input=False):
            if fault["type"] == "default_factory_not_called":
                continue  # a default derived from another setting, whose own fault is reported
            message = fault["msg"].removeprefix("Value error, ")
            name = str(fault["loc"][0]) if fault["loc"] else ""
            lines.append(f"{variable_of(name)}: {message}. See docs/settings.md." if name else f"{message}.")
        raise InvalidSettings("\n".join([*unknown, *sorted(lines)])) from None
    wrong = unknown if settings.env == "production" else list_unknown(nearly=True)
    if wrong:
        raise InvalidSettings("\n".join(wrong))
    return settings


def list_unknown(*, nearly: bool = False) -> list[str]:
    """Return a sentence for each environment variable that names no setting, with the nearest name.

    With `nearly`, only those count that are one letter off.
    """
    known, sentences = [*map(variable_of, Settings.model_fields), *map(file_variable_of, FILED)], []
    for name in sorted(os.environ):
        upper = name.upper()
        if upper.startswith(PREFIX) and upper not in (*known, *OTHERS):
            near = [other for other in known if _is_one_letter_off(upper, other)]
            if nearly and not near:
                continue
            near = near or get_close_matches(upper, known, 1)
            hint = f"; did you mean {near[0]}?" if near else "."
            sentences.append(f"{name}: there is no such setting{hint} See docs/settings.md.")
    return sentences


def _is_one_letter_off(given: str, known: str) -> bool:
    """Return whether one letter is missing, extra or another, or two neighbours are swapped."""
    while given[:1] == known[:1] and given:
        given, known = given[1:], known[1:]
    swapped = given[1:2] + given[:1] + given[2:]
    return known in (given[1:], swapped) or given[1:] == known[1:] or given == known[1:]


def variable_of(field: str) -> str:
    """Return the environment variable that sets this field."""
    return field if field.isupper() else f"SAYSO_{field.upper()}"


def _demo_model_url(host: str, port: int) -> str:
    return f"http://{reached_at(host)}:{port + 1}/v1"


def _production_faults(settings: Settings) -> Iterator[str]:
    if "policy" not in settings.model_fields_set:
        yield "set SAYSO_POLICY to your own rules; the default is the demo's"
    if not settings.secure_cookies:
        yield "set SAYSO_PUBLIC_URL to the https address of the service"
    if settings.allow_weak_durability:
        yield "unset SAYSO_ALLOW_WEAK_DURABILITY"
    for name, url in (("SAYSO_REDIS_URL", settings.redis_url), ("SAYSO_QUEUE_URL", settings.queue_url)):
        exposed = find_exposure(url) if url and not settings.allow_plain_store else None
        if exposed:
            yield f"add {exposed} to {name}, or set SAYSO_ALLOW_PLAIN_STORE=true on a network of your own"
    if settings.aap_allow_loopback:
        yield "unset SAYSO_AAP_ALLOW_LOOPBACK"
    for name, shortest in WEAKEST_IN_PRODUCTION.items():
        if _is_short(getattr(settings, name), shortest):
            yield f"use {shortest} characters or more in {variable_of(name)}"


def _is_short(secret: SecretStr | None, length: int) -> bool:
    return secret is not None and len(secret.get_secret_value()) < length
