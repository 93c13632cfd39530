"""An ntfy broker, as a small program: strict about fields, sizes and tokens."""

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

TOKEN = "tk_faketokenofthebroker0123456789"
TOPIC = "sayso-Approvals_7f3a"
_FIELDS = {"topic", "title", "message", "priority", "click", "actions"}


class BadMessage(Exception):
    """A message that the broker refuses, or would turn into an attachment."""


@dataclass
class Ntfy:
    """The notifications of a topic."""

    url: str = ""
    topics: set[str] = field(default_factory=lambda: {TOPIC})
    messages: list[dict[str, Any]] = field(default_factory=list)
    refusal: tuple[int, int] = (0, 0)

    def cards(self, address: str) -> list[Shown]:
        decides = [[one for one in message["actions"] if one["action"] != "view"] for message in self.messages]
        texts = [f"{message['title']}\n{message['message']}" for message in self.messages]
        return [Shown(text, bool(found)) for text, found in zip(texts, decides, strict=True)]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        self.refusal = (status, retry_after_s)

    def remove(self, address: str) -> None:
        self.topics.clear()

    async def publish(self, request: Request) -> Response:
        status, wait_s = self.refusal
        if status:
            headers = {"Retry-After": str(wait_s)} if wait_s else None
            return JSONResponse({"code": status * 100 + 1, "http": status}, status, headers)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"code": 40101, "http": 401, "error": "unauthorized"}, 401)
        body = await request.json()
        if body.get("topic") not in self.topics:
            return JSONResponse({"code": 40301, "http": 403, "error": "forbidden"}, 403)
        try:
            check_message(body)
        except BadMessage as error:
            return JSONResponse({"code": 40024, "http": 400, "error": str(error)}, 400)
        self.messages.append(body)
        return JSONResponse({**body, "id": f"m{len(self.messages)}", "event": "message"})


def check_message(body: dict[str, Any]) -> None:
    """Raise `BadMessage` for a message that the broker would not show as it is."""
    if not set(body) <= _FIELDS:
        raise BadMessage(f"unknown fields in {sorted(body)}")
    if not 0 < len(body["message"].encode()) <= 4096 or len(body["title"].encode()) > 250 or "\n" in body["title"]:
        raise BadMessage("message or title too large")
    if body["priority"] not in range(1, 6) or not body["click"].startswith(("http://", "https://")):
        raise BadMessage("priority or click invalid")
    if len(body["actions"]) > 3 or any(set(one) != {"action", "label", "url"} for one in body["actions"]):
        raise BadMessage("actions invalid")


@contextmanager
def serving_ntfy() -> Iterator[Ntfy]:
    """Serve a broker with one topic."""
    ntfy = Ntfy()
    with serving(Starlette(routes=[Route("/", ntfy.publish, methods=["POST"])])) as url:
        ntfy.url = url
        yield ntfy
