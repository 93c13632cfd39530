"""The file of the identity providers with which people sign in, and whether their passwords still count."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from sayso.core.records.base import Immutable
from sayso.errors import InvalidInput
from service.core.auth.reviewers import NAME_PATTERN, NAME_RULE
from service.core.auth.roles import ROLES
from service.core.settings.receivers import Secret, read_plan

SignInAlgorithm = Literal["RS256", "PS256", "ES256", "EdDSA"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Scope = Annotated[str, Field(pattern=r"^[!#-\[\]-~]{1,100}$")]
Domain = Annotated[str, Field(pattern=r"^[a-z0-9.-]+\.[a-z]{2,}$")]


class InvalidSignIn(InvalidInput):
    """The file of identity providers is invalid; correct it and start again."""


class ClaimNames(Immutable):
    """The claims that give a person's name, groups and time zone."""

    name: Name = "preferred_username"
    groups: Name = "groups"
    time_zone: Name = "zoneinfo"


class GroupRow(Immutable):
    """What members of a group of the provider have here: roles, and memberships in Sayso's groups."""

    roles: list[str] = Field(default=[], max_length=20)
    groups: list[str] = Field(default=[], max_length=50)

    @field_validator("roles")
    @classmethod
    def _check_roles(cls, roles: list[str]) -> list[str]:
        return check_roles(roles)

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, groups: list[str]) -> list[str]:
        for group in groups:
            if not NAME_PATTERN.fullmatch(group):
                raise ValueError(f"'{group}' is no name of a group here. {NAME_RULE}")
        return groups


class Provider(Immutable):
    """One provider, and what its claims mean here."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")
    title: str = Field(min_length=1, max_length=60)
    issuer: str = Field(min_length=1, max_length=1000, pattern=r"^https?://[^\s?#]+$")
    client_id: Name
    client_secret: Secret | None = None
    scopes: list[Scope] = Field(default=["openid", "profile", "email"], max_length=50)
    claims: ClaimNames = ClaimNames()
    groups: dict[Name, GroupRow] = Field(default={}, max_length=500)
    default_roles: list[str] = Field(default=["reviewer"], max_length=20)
    directory: bool = False  # whether the company's directory (SCIM) gives people the names that this provider gives
    required_group: Name | None = None
    email_domains: list[Domain] = Field(default=[], max_length=100)
    algorithms: list[SignInAlgorithm] = Field(default=["RS256", "PS256", "ES256", "EdDSA"], min_length=1)

    @field_validator("scopes")
    @classmethod
    def _check_scopes(cls, scopes: list[str]) -> list[str]:
        if "openid" not in scopes:
            raise ValueError("add openid; without it the provider names nobody")
        return scopes

    @field_validator("default_roles")
    @classmethod
    def _check_default_roles(cls, roles: list[str]) -> list[str]:
        return check_roles(roles)

    @property
    def rules_roles(self) -> bool:
        """Whether the claims decide about roles; else admins do."""
        return any(row.roles for row in self.groups.values())

    @property
    def named_groups(self) -> frozenset[str]:
        """Sayso's groups whose members the claims decide about."""
        return frozenset(group for row in self.groups.values() for group in row.groups)


_BOOLEANS = {True: "on", False: "off"}  # as YAML reads the words on and off
LocalAccounts = Annotated[
    Literal["on", "break_glass", "off"],
    BeforeValidator(lambda value: _BOOLEANS[value] if isinstance(value, bool) else value),
]


class SignInPlan(Immutable):
    """The file. `local_accounts` says whose passwords count: everybody's, those of admins, or nobody's."""

    local_accounts: LocalAccounts = "on"
    providers: list[Provider] = Field(default=[], max_length=20)

    @model_validator(mode="after")
    def _check_providers(self) -> "SignInPlan":
        ids = [provider.id for provider in self.providers]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"the provider {twice[0]} is there twice; rename one")
        if self.local_accounts != "on" and not self.providers:
            raise ValueError("without providers nobody could sign in; add one, or set local_accounts: on")
        return self

    @property
    def titles(self) -> str:
        return " or ".join(provider.title for provider in self.providers)


def check_roles(roles: list[str]) -> list[str]:
    """Return the roles, built-in or made by admins; raises `ValueError` for one that none can be, or a misspelt one.

    Each sign-in checks that the roles made by admins exist.
    """
    for role in roles:
        misspelt = role not in ROLES and get_close_matches(role, ROLES, 1, 0.8)
        if misspelt or not NAME_PATTERN.fullmatch(role):
            raise ValueError(f"'{role}' is no role; use {', '.join(ROLES)}, or one that an admin made")
    return roles


class Providers:
    """The providers of a file, which is read once."""

    def __init__(self, path: Path | None, check_url: Callable[[str], None]) -> None:
        self._path, self._check_url = path, check_url
        self._plan: SignInPlan | None = None

    def load(self) -> SignInPlan:
        """Return the content of the file; raises `InvalidSignIn` with what to correct."""
        if self._plan is None:
            plan = read_plan(self._path, SignInPlan, "SAYSO_SIGN_IN", InvalidSignIn)
            for provider in plan.providers:
                try:
                    self._check_url(provider.issuer)
                except InvalidInput as error:
                    raise InvalidSignIn(f"The issuer of {provider.id} cannot be used. {error.message}") from error
            self._plan = plan
        return self._plan

    def find(self, provider_id: str) -> Provider | None:
        """Return the provider of this id, or None."""
        return next((provider for provider in self.load().providers if provider.id == provider_id), None)
