"""Users and groups as a directory sends them (RFC 7643): the attributes that Sayso keeps, and no more."""

import re
from functools import cache
from typing import Annotated, Any

from pydantic import Field
from scim2_models import (
    URN,
    AuthenticationScheme,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    Mutability,
    Patch,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)
from scim2_models import Bulk as BulkSupport
from scim2_server.service import ScimService

MOST_RESULTS = 200


class Name(ComplexAttribute):
    """A person's name in its parts."""

    formatted: str | None = None
    family_name: str | None = None
    given_name: str | None = None


class User(Resource[Any]):
    """A person. What Sayso does not use, such as mail addresses and phone numbers, is ignored and not kept."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    active: bool | None = None


class Member(ComplexAttribute):
    """A user in a group, by id."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference[User] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class Group(Resource[Any]):
    """A group and its members, who are users of the same directory."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    members: list[Member] | None = None


@cache
def describe_service() -> ScimService:
    """Return the service with what it supports, and what it tolerates: the habits of Microsoft Entra and Okta."""
    policy = ScimPolicy(
        unknown=ScimPolicy.Unknown.ignore,
        remove_value_as_filter=ScimPolicy.RemoveValue.apply,
        unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
    )
    bearer = AuthenticationScheme(
        type=AuthenticationScheme.Type.oauthbearertoken,
        name="bearer",
        description="A key of the kind directory, which an admin makes",
    )
    config = ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=BulkSupport(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MOST_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=True),
        etag=ETag(supported=True),
        authentication_schemes=[bearer],
    )
    return ScimService(ScimProvider(models=[User, Group], config=config, policy=policy))


_PARTED = re.compile(r"[^a-z0-9._@-]+")


def name_group(display_name: str) -> str:
    """Return the name under which rules know a directory's group: `Payments Team` is `payments-team`."""
    return _PARTED.sub("-", display_name.strip().casefold()).strip("-._@")
