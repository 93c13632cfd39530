"""What the claims of a provider mean here: a name, roles, groups, a time zone, and whether the person may sign in."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from sayso.core.canonical_json import digest_json
from sayso.errors import NotAllowed
from service.core.auth.providers import Provider
from service.core.auth.reviewers import NAME_PATTERN, NAME_RULE, refuse_our_names
from service.features.sign_in.store import Identity

_MOST_GROUPS = 2_000


def list_missing(claims: Mapping[str, Any], provider: Provider) -> bool:
    """Return whether the claims lack one that is needed, so that the provider is asked for more."""
    names = provider.claims
    needed = [names.name]
    if provider.groups or provider.required_group is not None:
        needed.append(names.groups)
    if provider.email_domains:
        needed.append("email")
    return any(name not in claims for name in needed)


def identify(claims: Mapping[str, Any], provider: Provider) -> Identity:
    """Return whom verified claims identify; raises `NotAllowed` for somebody who may not sign in here."""
    groups = _list_groups(claims.get(provider.claims.groups))
    if provider.required_group is not None and provider.required_group not in groups:
        raise NotAllowed(
            f"You are not in the group {provider.required_group} of {provider.title}. Ask an admin for it."
        )
    _check_email(claims, provider)
    rows = [row for group, row in provider.groups.items() if group in groups]
    roles = tuple(dict.fromkeys(role for row in rows for role in row.roles)) or tuple(provider.default_roles)
    if not roles:
        raise NotAllowed(f"None of your groups of {provider.title} has a role here. Ask an admin for one.")
    session = claims.get("sid")
    return Identity(
        provider=provider.id,
        subject=digest_subject(provider.issuer, claims["sub"]),
        name=read_name(claims.get(provider.claims.name), provider),
        roles=roles,
        groups=tuple(sorted({group for row in rows for group in row.groups})),
        time_zone=_read_zone(claims.get(provider.claims.time_zone)),
        session=digest_subject(provider.issuer, session) if isinstance(session, str) else "",
    )


def digest_subject(issuer: str, subject: str) -> str:
    """Return the digest of a subject or a session of an issuer."""
    return digest_json([issuer, subject])


def read_name(claim: object, provider: Provider) -> str:
    """Return the name here: in lower case, without accents, with dots for spaces. Raises `NotAllowed`, `InvalidInput`.

    Other letters are not replaced, because two people could then get one name.
    """
    if not isinstance(claim, str):
        raise NotAllowed(
            f"{provider.title} gives no claim {provider.claims.name}. "
            "Name the claim that has people's names under claims in SAYSO_SIGN_IN."
        )
    parts = unicodedata.normalize("NFKD", claim[:200]).casefold()
    name = re.sub(r"\s+", ".", "".join(part for part in parts if not unicodedata.combining(part)).strip())
    if not NAME_PATTERN.fullmatch(name):
        raise NotAllowed(f"Your name at {provider.title} cannot be a name here. {NAME_RULE} Ask an admin.")
    refuse_our_names(name)
    return name


def _list_groups(claim: object) -> frozenset[str]:
    named = [claim] if isinstance(claim, str) else claim
    if not isinstance(named, list):
        return frozenset()
    return frozenset(group for group in named[:_MOST_GROUPS] if isinstance(group, str))


def _check_email(claims: Mapping[str, Any], provider: Provider) -> None:
    if not provider.email_domains:
        return
    email, verified = claims.get("email"), claims.get("email_verified")
    if not isinstance(email, str) or verified is not True:
        raise NotAllowed(f"{provider.title} has verified no mail address of yours. Verify it there.")
    if email.rpartition("@")[2].lower() not in provider.email_domains:
        raise NotAllowed(f"Only {', '.join(provider.email_domains)} may sign in here. Use an address of one of these.")


def _read_zone(claim: object) -> str:
    try:
        return ZoneInfo(claim).key if isinstance(claim, str) and len(claim) <= 64 else ""
    except (ValueError, OSError):  # no such zone, or no name of one
        return ""
