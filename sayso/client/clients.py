"""`Client` and `AsyncClient`: both retry while the desk is unavailable, with the same idempotency key."""

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache
from typing import Any, Self, TypeVar

import httpx
from pydantic_core import to_json

from sayso.client import requests, retries
from sayso.client.operations import Operations
from sayso.client.requests import Request, Response
from sayso.client.retries import PATIENCE_S, Flow, NoResponse, RetryPolicy, Sleep
from sayso.client.trace_context import find_traceparent
from sayso.core.packages import VERSION_HEADER, describe_difference
from sayso.errors import InvalidInput
from sayso.wire.models import ViewT
from sayso.wire.suspensions import EventView

URL = "http://127.0.0.1:8321"
"""The default address, where `make up` serves."""

_TIMEOUT_S = 20.0
_PAGE = 200
_LOG = logging.getLogger("sayso")
_LIMITS = httpx.Limits(max_keepalive_connections=20)  # each call that waits for its decision holds a connection

T = TypeVar("T")


class _Connection(Operations):
    def __init__(self, url: str | None, key: str | None, patience_s: float) -> None:
        self.url = _check_url(url or os.environ.get("SAYSO_URL") or URL)
        self.key = key or os.environ.get("SAYSO_KEY") or None
        if self.key and not re.fullmatch(r"[!-~]+", self.key):  # the error does not repeat the key
            raise InvalidInput(
                "The key contains a character that keys never have, such as a space or a line break. "
                "Copy it again, without anything around it."
            )
        self.retry_policy = RetryPolicy(self.url, patience_s)

    def _build(self, request: Request[Any]) -> dict[str, Any]:
        headers, content = {"Accept": "application/json", "User-Agent": "sayso-python"}, None
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        if request.on_behalf_of is not None:
            headers["Sayso-On-Behalf-Of"] = request.on_behalf_of
        if (traceparent := find_traceparent()) is not None:
            headers["traceparent"] = traceparent
        if request.body is not None:
            headers["Content-Type"], content = "application/json", to_json(request.body)
        return {
            "method": request.method,
            "url": self.url + request.path,
            "params": dict(request.query),
            "content": content,
            "headers": headers,
            "timeout": _TIMEOUT_S + request.poll_s,
        }

    def _read(self, response: httpx.Response) -> Response:
        if version := response.headers.get(VERSION_HEADER):
            _compare_versions(self.url, version)
        return Response(response.status_code, response.headers, response.content)


class Client(_Connection):
    """A blocking client of the desk's API.

    `url` and `key` default to `SAYSO_URL` and `SAYSO_KEY`. A request is retried for `patience_s`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(url, key, patience_s)
        self._http, self._sleep = httpx.Client(transport=transport, limits=_LIMITS), sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end and return its result."""
        received: Any = None
        try:
            while True:
                step = flow.send(received)
                received = self._sleep(step.seconds) if isinstance(step, Sleep) else self._receive(step)
        except StopIteration as end:
            result: T = end.value
            return result

    def _receive(self, request: Request[Any]) -> Response | NoResponse:
        try:
            response = self._http.request(**self._build(request))
        except httpx.TransportError as error:
            return _describe_failure(error)
        return self._read(response)

    def exchange(self, request: Request[ViewT]) -> ViewT:
        """Send one request and return its response."""
        return self.run(retries.send(self.retry_policy, request))

    def events(self, run_id: str, after: int = 0) -> Iterator[EventView]:
        """Yield the run's events in order, starting behind the number `after`."""
        while (page := self.exchange(requests.list_events(run_id, after, _PAGE))).next_after > after:
            yield from page.events
            after = page.next_after


class AsyncClient(_Connection):
    """An asyncio client of the desk's API. Use an instance in one event loop only."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(url, key, patience_s)
        self._http, self._sleep = httpx.AsyncClient(transport=transport, limits=_LIMITS), sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end and return its result."""
        received: Any = None
        try:
            while True:
                step = flow.send(received)
                received = await (self._sleep(step.seconds) if isinstance(step, Sleep) else self._receive(step))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _receive(self, request: Request[Any]) -> Response | NoResponse:
        try:
            response = await self._http.request(**self._build(request))
        except httpx.TransportError as error:
            return _describe_failure(error)
        return self._read(response)

    async def exchange(self, request: Request[ViewT]) -> ViewT:
        """Send one request and return its response."""
        return await self.run(retries.send(self.retry_policy, request))

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[EventView]:
        """Yield the run's events in order, starting behind the number `after`."""
        while (page := await self.exchange(requests.list_events(run_id, after, _PAGE))).next_after > after:
            for event in page.events:
                yield event
            after = page.next_after


@cache
def _compare_versions(url: str, version: str) -> None:
    """Log once that a desk has another version."""
    if difference := describe_difference(url, version):
        _LOG.warning("%s", difference)


def _check_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidInput(f"{url!r} is not a valid URL: {error}. Write it as {URL}.") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"{url!r} is not the URL of a desk. Write it as {URL}.")
    return url.rstrip("/")


def _describe_failure(error: httpx.TransportError) -> NoResponse:
    timed_out = isinstance(error, httpx.TimeoutException)
    return NoResponse("the request timed out" if timed_out else str(error) or type(error).__name__)
