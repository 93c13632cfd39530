"""Hold every setting of Sayso, read once from the environment, checked, and never changed afterwards.

The names are the fields below in capitals behind `SAYSO_`; `docs/settings.md` lists them and a test keeps it complete.
Whatever is wrong is said in one `InvalidSettings`, a line a setting, before anything is started.
"""

import base64
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import quote, urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from sayso.errors import InvalidInput
from service.settings.edge import EdgeSettings
from service.settings.exposure import find_exposure
from service.settings.limits import LimitSettings
from service.settings.misspelt import find_unknown
from service.settings.store_urls import check_port, check_store_url

CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder that holds `service/`; relative defaults start here, whatever the working directory is."""

LONGEST_SOCKET_PATH_BYTES = 92
"""Unix socket paths end at 104 bytes on some systems and 108 on others, and the supervisor appends a process id while
it makes its own; longer homes get a short folder instead."""

EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound
LONGEST_SESSION_S = 366 * 86_400
SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1024
SHORTEST_KEY = 16
WEAKEST_PRODUCTION_PASSWORD = 12
WEAKEST_PRODUCTION_KEY = 32
WEAKEST_WEBHOOK_SECRET_BYTES = 24

Words = Annotated[tuple[str, ...], NoDecode]
"""A setting written as words with commas between them."""


class InvalidSettings(InvalidInput):
    """The settings cannot be used as they are; correct them and start again."""


class Settings(LimitSettings, EdgeSettings):
    """Everything an operator can choose; frozen, so that no two parts of a process see different values."""

    model_config = SettingsConfigDict(env_prefix="SAYSO_", env_ignore_empty=True, frozen=True, extra="forbid")

    env: Literal["local", "production"] = Field(
        default="local",
        description="`production` refuses what only fits your own machine: plain http, short secrets, weak durability.",
    )
    home: Path = Field(
        default=CHECKOUT / ".sayso",
        description="Folder of all data: the store's files, sockets and logs. Kept between starts.",
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address the service listens on; `0.0.0.0` for every one.",
    )
    port: int = Field(
        default=8321,
        ge=1,
        le=65534,
        description="Port the service listens on. The demo's model endpoint takes the next one.",
    )
    public_url: str = Field(
        default_factory=lambda data: f"http://{reached_at(data['host'])}:{data['port']}",
        description="Address at which browsers and agents reach the service, used in links and origin checks. "
        "With `https` the session cookie is `Secure` and named `__Host-…`.",
    )
    admin_password: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="Password of the reviewer `admin`, set at every start. Without it one is made at the first start "
        "and printed once.",
    )
    agent_key: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="Known API key for the agent named `demo`. Without it one is made and printed once.",
    )
    redis_url: str | None = Field(
        default=None,
        repr=False,
        validation_alias=AliasChoices("SAYSO_REDIS_URL", "REDIS_URL", "redis_url"),
        description="Redis or Valkey to use: `redis://`, `rediss://` or `unix://`; plain `REDIS_URL` works too. "
        "Without it `make up` starts its own server on a socket in the home.",
    )
    allow_weak_durability: bool = Field(
        default=False,
        description="Start even if the store may forget what it confirmed: no append-only file, or not synced at once.",
    )
    allow_plain_store: bool = Field(
        default=False,
        description="Start in production though the store is on another machine and its URL has no password or no TLS: "
        "only where the network between is yours alone.",
    )
    agents: Words = Field(
        default=("demo.agents:support",),
        description="Agents that can be run: import paths such as `demo.agents:support`, with commas between them.",
    )
    policy: Path = Field(
        default=CHECKOUT / "demo" / "policy.yaml",
        description="YAML file with the rules that judge every tool call.",
    )
    workers: int = Field(default=2, ge=1, le=64, description="Number of worker processes that `make up` starts.")
    lease_s: int = Field(
        default=30,
        ge=1,
        le=3600,
        description="Seconds a worker holds a run before another may take it up; renewed while it works.",
    )
    drain_window_s: int = Field(
        default=30,
        ge=1,
        le=3600,
        description="Longest time in seconds one job goes on taking runs from the ready list.",
    )
    drain_concurrency: int = Field(default=64, ge=1, le=1024, description="Runs one job drives at the same time.")
    keep_runs_days: int = Field(
        default=30, ge=1, le=36_500, description="Days after its end at which a run's records and state are deleted."
    )
    keep_trail_days: int = Field(
        default=365,
        ge=1,
        le=36_500,
        description="Days after its end at which a run's trail is deleted too: the last that is known of it.",
    )
    session_idle_s: int = Field(
        default=7_200,
        ge=60,
        le=LONGEST_SESSION_S,
        description="Seconds after which a reviewer who did nothing is signed out.",
    )
    session_max_s: int = Field(
        default=43_200,
        ge=60,
        le=LONGEST_SESSION_S,
        description="Seconds after which a reviewer signs in again in any case.",
    )
    body_limit_bytes: int = Field(
        default=262_144,
        ge=1_024,
        le=16 * 1024 * 1024,
        description="Largest request body in bytes.",
    )
    state_limit_bytes: int = Field(
        default=4 * 1024 * 1024,
        ge=1_024,
        le=8 * 1024 * 1024,
        description="Largest state in bytes of a paused run of another framework, as it is sent with what it asks.",
    )
    webhook_secret: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        default=(),
        description="Secrets (`whsec_…`) that sign decisions sent to `/hooks/decisions`; several with commas while "
        "rotating. Without one the webhook is closed.",
    )
    aap_allow_loopback: bool = Field(
        default=False,
        description="Let receivers of the Agent Approval Protocol be on this very machine, for tests. Refused in "
        "production.",
    )
    model_url: str = Field(
        default_factory=lambda data: _demo_model_url(data["host"], data["port"]),
        description="Base URL of the chat-completions API the demo agent talks to. While it is the default, `make up` "
        "starts a small local endpoint there.",
    )
    model_name: str = Field(default="demo", min_length=1, description="Model the demo agent asks for.")
    model_key: SecretStr | None = Field(
        default=None, min_length=1, description="API key for the model endpoint, if it wants one."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least important kind of log line that is written."
    )

    @field_validator("home", "policy", mode="after")
    @classmethod
    def _make_absolute(cls, path: Path) -> Path:
        try:
            return path.expanduser().resolve()
        except RuntimeError:
            raise ValueError(f"{path} begins with the home of nobody who is known; write the whole path") from None

    @field_validator("agents", "webhook_secret", mode="before")
    @classmethod
    def _split_words(cls, value: object) -> object:
        return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value

    @field_validator("agents", mode="after")
    @classmethod
    def _check_agents(cls, agents: tuple[str, ...]) -> tuple[str, ...]:
        for agent in agents:
            if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", agent):
                raise ValueError(f"'{agent}' is not an import path; write package.module:name")
        return agents

    @field_validator("agent_key", mode="after")
    @classmethod
    def _check_agent_key(cls, key: SecretStr | None) -> SecretStr | None:
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

    @field_validator("redis_url", mode="after")
    @classmethod
    def _check_redis_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        check_store_url(url)
        return url

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

    @field_validator("webhook_secret", mode="after")
    @classmethod
    def _check_webhook_secrets(cls, secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for secret in secrets:
            _check_webhook_secret(secret.get_secret_value())
        return secrets

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_sessions(self) -> Self:
        if self.session_idle_s > self.session_max_s:
            raise ValueError("SAYSO_SESSION_IDLE_S is above SAYSO_SESSION_MAX_S; make it the smaller one")
        return self

    @model_validator(mode="after")
    def _check_retention(self) -> Self:
        if self.keep_trail_days < self.keep_runs_days:
            raise ValueError("SAYSO_KEEP_TRAIL_DAYS is below SAYSO_KEEP_RUNS_DAYS; a trail is kept as long as its run")
        return self

    @model_validator(mode="after")
    def _check_production(self) -> Self:
        if self.env == "production" and (faults := tuple(_production_faults(self))):
            raise ValueError("SAYSO_ENV=production needs more care: " + "; ".join(faults))
        return self

    @property
    def store_url(self) -> str:
        """The URL of the store in force: the one given, or the embedded server's socket."""
        return self.redis_url or store_url_at(socket_path(self.home))

    @property
    def secure_cookies(self) -> bool:
        """Whether browsers reach the service over https only, so that cookies can insist on it."""
        return self.public_url.startswith("https://")

    @property
    def demo_model_port(self) -> int:
        """The port of the demo's model endpoint: the one after the service's, so that two checkouts do not collide."""
        return self.port + 1

    @property
    def runs_demo_model(self) -> bool:
        """Whether the model endpoint is the small local one, which `make up` starts itself."""
        return self.model_url == _demo_model_url(self.host, self.port)


def reached_at(host: str) -> str:
    """Return how this machine writes the address of what listens on this host."""
    address = EVERY_ADDRESS.get(host, host)
    return f"[{address}]" if ":" in address else address


def load() -> Settings:
    """Return the settings of this process, or raise `InvalidSettings` with a line for each that is wrong."""
    unknown = list(find_unknown(map(variable_of, Settings.model_fields)))
    try:
        settings = Settings()
    except ValidationError as error:
        raise InvalidSettings("\n".join([*unknown, *_explain(error)])) from None
    if unknown:
        raise InvalidSettings("\n".join(unknown))
    return settings


def variable_of(field: str) -> str:
    """Return the environment variable that sets this field."""
    return field if field.isupper() else f"SAYSO_{field.upper()}"


def store_url_at(socket: Path) -> str:
    """Return the URL of a store that listens on this socket."""
    return f"unix://{quote(str(socket))}?db=0"


def socket_path(home: Path, name: str = "store.sock") -> Path:
    """Return where a socket of this home lies: in it, or in a short folder of our own when its path is too long."""
    inside = home / name
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH_BYTES:
        return inside
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"sayso-{os.getuid()}-{digest}" / name


def _demo_model_url(host: str, port: int) -> str:
    return f"http://{reached_at(host)}:{port + 1}/v1"


def _check_webhook_secret(secret: str) -> None:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith("whsec_") or len(key) < WEAKEST_WEBHOOK_SECRET_BYTES:
        raise ValueError(f"write whsec_ and then at least {WEAKEST_WEBHOOK_SECRET_BYTES} random bytes in base64")


def _production_faults(settings: Settings) -> Iterator[str]:
    if "policy" not in settings.model_fields_set:
        yield "set SAYSO_POLICY to your own rules; the default is the demo's"
    if not settings.secure_cookies:
        yield "set SAYSO_PUBLIC_URL to the https address of the service"
    if settings.allow_weak_durability:
        yield "unset SAYSO_ALLOW_WEAK_DURABILITY"
    exposed = find_exposure(settings.redis_url) if settings.redis_url and not settings.allow_plain_store else None
    if exposed:
        yield f"add {exposed} to SAYSO_REDIS_URL, or set SAYSO_ALLOW_PLAIN_STORE=true on a network of your own"
    if settings.aap_allow_loopback:
        yield "unset SAYSO_AAP_ALLOW_LOOPBACK"
    if _is_short(settings.admin_password, WEAKEST_PRODUCTION_PASSWORD):
        yield f"use {WEAKEST_PRODUCTION_PASSWORD} characters or more in SAYSO_ADMIN_PASSWORD"
    if _is_short(settings.agent_key, WEAKEST_PRODUCTION_KEY):
        yield f"use {WEAKEST_PRODUCTION_KEY} characters or more in SAYSO_AGENT_KEY"


def _is_short(secret: SecretStr | None, length: int) -> bool:
    return secret is not None and len(secret.get_secret_value()) < length


def _explain(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        if fault["type"] == "default_factory_not_called":
            continue  # a default made from another setting, whose own fault is told already
        message = fault["msg"].removeprefix("Value error, ")
        name = str(fault["loc"][0]) if fault["loc"] else ""
        yield f"{variable_of(name)}: {message}. See docs/settings.md." if name else f"{message}."
