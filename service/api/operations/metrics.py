"""Route of the metrics, for Prometheus."""

import hmac

from fastapi import APIRouter, Request, Response

from sayso.errors import NotAuthenticated, NotFound
from service.api.routing.routes import OpenRoute, bearer_token
from service.operations.metrics.pages import render_metrics
from service.operations.metrics.readings import Readings
from service.settings import Settings, variable_of

router = APIRouter(route_class=OpenRoute, include_in_schema=False)


@router.get("/metrics")
async def read_metrics(request: Request) -> Response:
    """Return the metrics of this process and of the store to the holder of the token."""
    _check_token(request, request.app.state.process.settings)
    readings: Readings = request.app.state.readings
    text, media_type = await render_metrics(readings, request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": media_type})


def _check_token(request: Request, settings: Settings) -> None:
    if settings.metrics_token is None:
        raise NotFound(f"The metrics are closed. Set {variable_of('metrics_token')} to open them.")
    sent, token = bearer_token(request) or "", settings.metrics_token.get_secret_value()
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise NotAuthenticated(f"Send the token of {variable_of('metrics_token')} as 'Authorization: Bearer …'.")
