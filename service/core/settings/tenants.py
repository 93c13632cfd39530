"""The file of tenants: each has its address, and the rules, channels and store of its own that it names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from sayso.core.policy.files.yaml_documents import read_document
from sayso.core.records.base import Immutable
from service.core.settings import FILES, InvalidSettings, Settings
from service.core.settings.limits import TenantName


class _Row(Immutable):
    """A tenant: settings in place of those of the environment. Paths start at the file's folder."""

    public_url: str
    redis_url: str | None = None
    policy: str | None = None
    channels: str | None = None
    drills: str | None = None
    assessors: str | None = None
    token_issuers: str | None = None
    sign_in: str | None = None
    checkpoints: tuple[str, ...] | None = None
    environment: str | None = None
    agents: tuple[str, ...] | None = None
    policy_attestations: int | None = None


class _File(Immutable):
    tenants: Annotated[dict[TenantName, _Row], Field(min_length=1, max_length=100)]


def list_desks(settings: Settings) -> Mapping[str, Settings]:
    """Return the settings of each tenant that the service serves; raises `InvalidSettings`."""
    if settings.tenants is None:
        return {settings.tenant: settings}
    desks = {name: _settle(settings, settings.tenants, name, row) for name, row in _read(settings.tenants).items()}
    by_host: dict[str, str] = {}
    for name, desk in desks.items():
        other = by_host.setdefault(host_of(desk.public_url), name)
        if other != name:
            raise InvalidSettings(f"{settings.tenants}: {name} has the host of {other}. Give each tenant a host.")
    return desks


def find_desk(settings: Settings) -> Settings:
    """Return the settings of the tenant that a worker, clock or command serves; raises `InvalidSettings`."""
    desks = list_desks(settings)
    if settings.tenant not in desks:
        raise InvalidSettings(f"SAYSO_TENANT is {settings.tenant}. Set it to one of {', '.join(desks)}.")
    return desks[settings.tenant]


def host_of(url: str) -> str:
    """Return the host and port of an address as a `Host` header names it."""
    return urlsplit(url).netloc


def _read(path: Path) -> Mapping[str, _Row]:
    try:
        document = read_document(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidSettings(f"SAYSO_TENANTS: {path} cannot be read ({error.strerror}). Correct the path.") from None
    if document.problems:
        raise InvalidSettings("\n".join(map(str, document.problems)))
    try:
        return _File.model_validate(document.content).tenants
    except ValidationError as error:
        raise InvalidSettings(_describe(path, "", error)) from None


def _settle(settings: Settings, file: Path, name: str, row: _Row) -> Settings:
    given = row.model_dump(exclude_none=True)
    for field in FILES:
        if field in given:
            given[field] = file.parent / given[field]
    kept = settings.model_dump(include=settings.model_fields_set)
    try:
        return Settings.model_validate({**kept, **given, "tenant": name})
    except ValidationError as error:
        raise InvalidSettings(_describe(file, name, error)) from None


def _describe(file: Path, name: str, error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, (*((name,) if name else ()), *fault["loc"])))
        lines.append(f"{file}: {place}: {fault['msg'].removeprefix('Value error, ')}. Correct the file.")
    return "\n".join(lines)
