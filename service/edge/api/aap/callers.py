"""Callers of the protocol: provisioners and instances, identified by their credential before the body is read."""

import re
from typing import Annotated, NamedTuple

from fastapi import Depends, Header, Path, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sayso.errors import NotAuthenticated, NotFound
from service.core.auth.credentials import require_network
from service.core.auth.hosts import origin_of
from service.core.store.instances import Instance
from service.core.wiring import Process
from service.edge.api.aap.models import UUID_FORM
from service.edge.api.aap.problems import Refusal
from service.edge.api.routes import OpenRoute, bearer_token
from service.edge.http.middleware import admit_body

_UUID = re.compile(UUID_FORM)
_BEARER = HTTPBearer(auto_error=False, scheme_name="Bearer", description="A provisioner's or an instance's token.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


class Scope(NamedTuple):
    """A provisioner and the token of this request. All its tokens manage the same instances."""

    tenant: str
    name: str
    token: str


class ScopeRoute(OpenRoute):
    """A route for provisioners."""

    async def admit(self, request: Request) -> None:
        """Identify the provisioner. Raises `NotAuthenticated`, and `Refusal` for an instance."""
        request.state.aap_scope = await _find_scope(request)
        _check_one_key(request)


class InstanceRoute(OpenRoute):
    """A route for instances."""

    async def admit(self, request: Request) -> None:
        """Identify the instance. Raises `NotAuthenticated`, and `Refusal` for a provisioner."""
        request.state.aap_instance = await find_instance(request)
        _check_one_key(request)


async def scope_of(request: Request, _bearer: Bearer) -> Scope:
    """Return the calling provisioner."""
    scope: Scope = request.state.aap_scope
    return scope


async def instance_of(request: Request, _bearer: Bearer) -> Instance:
    """Return the calling instance."""
    instance: Instance = request.state.aap_instance
    return instance


Provisioner = Annotated[Scope, Depends(scope_of)]
Requester = Annotated[Instance, Depends(instance_of)]

Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern="^[!-~]+$",
        description="The same request with the same key has no further effect and gets the same answer.",
        examples=["6f1d3b62-2c8a-4d3c-9a86-0b6f3c2d1e4f"],
    ),
]


async def id_of(id: Annotated[str, Path(description="A UUID.", json_schema_extra={"format": "uuid"})]) -> str:
    """Return the id in the path. Raises `NotFound` unless it is a UUID."""
    if not _UUID.fullmatch(id):
        raise NotFound("Nothing has this id for this credential.")
    return id


Id = Annotated[str, Depends(id_of)]


async def _find_scope(request: Request) -> Scope:
    token, process = _token_of(request)
    key = await process.credentials.find_machine(token, "provisioner")
    if key is not None:
        request.state.wiring = process.wiring
        require_network(key.terms, origin_of(request).address)
        admit_body(request)
        return Scope(key.tenant, key.name, token)
    if await process.find_instance(token) is not None:
        raise Refusal(403, "provisioner_required", "An instance cannot manage instances. Use a provisioner's token.")
    raise NotAuthenticated("This is not a valid token of a provisioner.")


async def find_instance(request: Request) -> Instance:
    """Return the calling instance. Raises `NotAuthenticated`, and `Refusal` for a provisioner."""
    token, process = _token_of(request)
    instance = await process.find_instance(token)
    if instance is not None:
        request.state.wiring = process.wiring
        admit_body(request)
        return instance
    if await process.credentials.find_machine(token, "provisioner") is not None:
        raise Refusal(403, "instance_required", "A provisioner cannot create requests. Use an instance's token.")
    raise NotAuthenticated("This is not a token of an instance, or the instance was deleted.")


def _token_of(request: Request) -> tuple[str, Process]:
    token = bearer_token(request)
    if token is None:
        raise NotAuthenticated("The credential is missing. Send 'Authorization: Bearer <token>'.")
    return token, request.app.state.process


def _check_one_key(request: Request) -> None:
    if len(request.headers.getlist("idempotency-key")) > 1:
        raise Refusal(400, "invalid_idempotency_key", "Send the header Idempotency-Key once.", "Idempotency-Key")
