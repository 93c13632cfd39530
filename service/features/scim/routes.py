"""Requests of a company's directory, which keeps people and groups with a key of the kind directory."""

import json
from http import HTTPStatus

from scim2_models import Error, SCIMException, UnauthorizedException
from scim2_server.handler import AsyncScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import ScimResponse
from starlette.requests import Request
from starlette.responses import Response

from sayso.errors import SaysoError
from service.core.auth.credentials import require_network
from service.core.auth.hosts import origin_of
from service.core.store.people import DIRECTORY
from service.edge.api.problems import describe_problem
from service.edge.api.routes import bearer_token
from service.edge.http.middleware import admit_body
from service.features.scim.model import describe_service
from service.features.scim.storage import DirectoryStorage


async def serve(request: Request, prefix: str) -> Response:
    """Serve a request of a directory below `prefix`; every error is one of SCIM's (RFC 7644, section 3.12)."""
    service = describe_service()
    try:
        storage = await _admit(request)
        response = await AsyncScimHandler(service, storage).handle(await _read(request, prefix))
    except SCIMException as error:
        response = service.error_response(error)
    except SaysoError as error:
        problem = describe_problem(error)
        response = ScimResponse(
            HTTPStatus(problem.status), Error(status=problem.status, detail=problem.detail).model_dump()
        )
    body = b"" if response.body is None else json.dumps(response.body).encode()
    return Response(body, int(response.status), response.headers)


async def _admit(request: Request) -> DirectoryStorage:
    """Return the directory of the request's key."""
    process, token = request.app.state.process, bearer_token(request)
    key = await process.credentials.find_machine(token, DIRECTORY) if token is not None else None
    if key is None:
        raise UnauthorizedException(detail="Send 'Authorization: Bearer <key>' with a key of the kind directory.")
    address = origin_of(request).address
    require_network(key.terms, address)
    admit_body(request)
    return DirectoryStorage(process.wiring, key.name, address)


async def _read(request: Request, prefix: str) -> ScimRequest:
    return ScimRequest(
        method=request.method,
        base_url=request.app.state.process.settings.public_url + prefix,
        path=request.url.path.partition(prefix)[2],
        query=dict(request.query_params),
        headers=[(name, value) for name, value in request.headers.items() if name != "authorization"],
        body=await request.body(),
    )
