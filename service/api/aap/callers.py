"""Tell provisioners from instances, by the credential alone, before anything of a request is read."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Path, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sayso.errors import NotAuthenticated, NotFound
from service.api.aap.models import UUID_FORM
from service.api.aap.problems import Refusal
from service.api.routing.routes import OpenRoute, bearer_token
from service.store.instances import Instance
from service.wiring import Process

_UUID = re.compile(UUID_FORM)
_BEARER = HTTPBearer(auto_error=False, scheme_name="Bearer", description="A provisioner's or an instance's token.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


@dataclass(frozen=True)
class Scope:
    """A provisioner: it sees to its own instances, whichever of its tokens it comes with."""

    tenant: str
    name: str
    token: str


class ScopeRoute(OpenRoute):
    """A route for provisioners."""

    async def admit(self, request: Request) -> None:
        """Raise `NotAuthenticated` without a credential that holds, `Refusal` for an instance's."""
        request.state.aap_scope = await _find_scope(request)
        _check_one_key(request)


class InstanceRoute(OpenRoute):
    """A route for instances."""

    async def admit(self, request: Request) -> None:
        """Raise `NotAuthenticated` without a credential that holds, `Refusal` for a provisioner's."""
        request.state.aap_instance = await find_instance(request)
        _check_one_key(request)


async def scope_of(request: Request, _bearer: Bearer) -> Scope:
    """Return the provisioner who is calling."""
    scope: Scope = request.state.aap_scope
    return scope


async def instance_of(request: Request, _bearer: Bearer) -> Instance:
    """Return the instance that is calling, as it stands now."""
    instance: Instance = request.state.aap_instance
    return instance


Provisioner = Annotated[Scope, Depends(scope_of)]
Asker = Annotated[Instance, Depends(instance_of)]

Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern="^[!-~]+$",
        description="The same key with the same request again is answered like the first; nothing is done twice.",
        examples=["6f1d3b62-2c8a-4d3c-9a86-0b6f3c2d1e4f"],
    ),
]


async def id_of(
    id: Annotated[str, Path(description="A UUID.", json_schema_extra={"format": "uuid"})],
) -> str:
    """Return the id in the path; raises `NotFound` for what can be none."""
    if not _UUID.fullmatch(id):
        raise NotFound("There is nothing under that id for this credential.")
    return id


Id = Annotated[str, Depends(id_of)]


async def _find_scope(request: Request) -> Scope:
    token, process = _token_of(request)
    key = await process.credentials.find_provisioner(token)
    if key is not None:
        request.state.wiring = process.tenant(key.tenant)
        return Scope(key.tenant, key.name, token)
    if await process.find_instance(token) is not None:
        raise Refusal(403, "provisioner_required", "An instance cannot manage instances; use a provisioner's token.")
    raise NotAuthenticated("This is no provisioner's token, or it does not hold any more.")


async def find_instance(request: Request) -> Instance:
    """Return the instance that is calling; raises `NotAuthenticated`, and `Refusal` for a provisioner."""
    token, process = _token_of(request)
    instance = await process.find_instance(token)
    if instance is not None:
        request.state.wiring = process.tenant(instance.tenant)
        return instance
    if await process.credentials.find_provisioner(token) is not None:
        raise Refusal(403, "instance_required", "A provisioner cannot ask; use an instance's token.")
    raise NotAuthenticated("This is no instance's token, or its instance was deleted.")


def _token_of(request: Request) -> tuple[str, Process]:
    token = bearer_token(request)
    if token is None:
        raise NotAuthenticated("No credential came with this; send 'Authorization: Bearer <token>'.")
    return token, request.app.state.process


def _check_one_key(request: Request) -> None:
    if len(request.headers.getlist("idempotency-key")) > 1:
        raise Refusal(400, "invalid_idempotency_key", "Send the header Idempotency-Key once.", "Idempotency-Key")
