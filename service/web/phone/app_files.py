"""The manifest and the service worker, which browsers expect at the root. Both are public."""

import json

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from service.http.assets import STATIC, asset
from service.web.form_posts import RecordedRoute

router = APIRouter(route_class=RecordedRoute)

_COLOR, _PAPER = "#1d6f5c", "#f5f6f4"


@router.get("/manifest.webmanifest")
async def read_manifest() -> Response:
    """Describe the dashboard as an app."""
    icons = [
        {"src": asset("icon-192.png"), "sizes": "192x192", "type": "image/png", "purpose": "any"},
        {"src": asset("icon-512.png"), "sizes": "512x512", "type": "image/png", "purpose": "any"},
        {"src": asset("icon-maskable-512.png"), "sizes": "512x512", "type": "image/png", "purpose": "maskable"},
        {"src": asset("favicon.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
    ]
    manifest = {
        "id": "/",
        "name": "Sayso",
        "short_name": "Sayso",
        "description": "Approve what your agents do.",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "theme_color": _COLOR,
        "background_color": _PAPER,
        "icons": icons,
    }
    return Response(json.dumps(manifest), media_type="application/manifest+json")


@router.get("/service-worker.js")
async def read_service_worker() -> FileResponse:
    """Return the script that shows notifications. It handles no requests and stores nothing."""
    return FileResponse(STATIC / "service-worker.js", media_type="text/javascript")
