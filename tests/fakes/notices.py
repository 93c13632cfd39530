"""A place of apprise's `json://`, as a small program: strict about the fields and the size of a Discord message."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fakes.serving import serving
from tests.service.channels.conformance import Shown

SECRET = "fake-secret-of-the-place"


@dataclass
class Place:
    """The notices that arrived."""

    url: str = ""
    known: bool = True
    notices: list[dict[str, Any]] = field(default_factory=list)
    refusal: int = 0

    def cards(self, address: str) -> list[Shown]:
        return [Shown(f"{one['title']}\n{one['message']}", decides=False) for one in self.notices]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        self.refusal = status

    def remove(self, address: str) -> None:
        self.known = False

    async def take(self, request: Request) -> Response:
        if self.refusal or not self.known or request.path_params["secret"] != SECRET:
            return JSONResponse({}, self.refusal or 404)
        body = await request.json()
        text = f"{body['title']}\n{body['message']}"
        if body["type"] != "info" or len(text.encode("utf-16-le")) // 2 > 2000:
            return JSONResponse({}, 400)
        self.notices.append(body)
        return JSONResponse({})


@contextmanager
def serving_place() -> Iterator[Place]:
    """Serve one place; its `url` is one of apprise."""
    place = Place()
    with serving(Starlette(routes=[Route("/{secret}", place.take, methods=["POST"])])) as url:
        place.url = f"{url.replace('http://', 'json://')}/{SECRET}"
        yield place
