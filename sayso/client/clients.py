"""Speak with a desk from Python: `Client`, and `AsyncClient` for asyncio, over the same requests and the same retries.

Both try again while the desk is away, always with the same key, so that nothing is done twice.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import JsonValue
from pydantic_core import to_json

from sayso.canonical_json import JsonObject, check_json
from sayso.client import requests as exchanges
from sayso.client import retries
from sayso.client.keys import AsyncKeyCalls, KeyCalls
from sayso.client.polling import AsyncPolling, Polling
from sayso.client.problems import Answer
from sayso.client.requests import Exchange, headers_of
from sayso.client.responses import (
    DecidedItem,
    ExternalEventsSeen,
    ItemSeen,
    Reply,
    Run,
    RunEvent,
    RunPage,
    Suspension,
    SuspensionPage,
)
from sayso.client.retries import PATIENCE_S, Flow, Lost, Patience, Pause, Send
from sayso.errors import InvalidInput

URL = "http://127.0.0.1:8321"
"""Where `make up` serves, unless told otherwise."""

_TIMEOUT_S = 20.0
_PAGE = 200

T = TypeVar("T")
Answered = TypeVar("Answered", bound=Reply)


class _Caller:
    """Where the desk is and who is calling, however it is called."""

    def __init__(self, url: str | None, key: str | None, patience_s: float) -> None:
        self.url = _check_url(url or os.environ.get("SAYSO_URL") or URL)
        self.key = exchanges.check_credential(key or os.environ.get("SAYSO_KEY") or None)
        self.patience = Patience(self.url, patience_s)

    def _request(self, exchange: Exchange[Any]) -> dict[str, Any]:
        headers, content = headers_of(exchange, self.key), None
        if exchange.body is not None:
            check_json(exchange.body)
            headers["Content-Type"], content = "application/json", to_json(exchange.body)
        return {
            "method": exchange.method,
            "url": self.url + exchange.path,
            "params": dict(exchange.query),
            "content": content,
            "headers": headers,
            "timeout": _TIMEOUT_S + exchange.poll_s,
        }


class Client(_Caller, KeyCalls, Polling):
    """The desk as one credential sees it; every method waits for its answer.

    `url` and `key` are read from `SAYSO_URL` and `SAYSO_KEY` where they are not given.
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
        self._http = httpx.Client(transport=transport)
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, flow: Flow[T]) -> T:
        """Do what a flow says, to its end."""
        answer: Any = None
        try:
            while True:
                step = flow.send(answer)
                answer = self._sleep(step.s) if isinstance(step, Pause) else self._send(step)
        except StopIteration as end:
            result: T = end.value
            return result

    def _send(self, step: Send) -> Answer | Lost:
        try:
            got = self._http.request(**self._request(step.exchange))
        except httpx.TransportError as error:
            return Lost(_tell(error))
        return Answer(got.status_code, got.headers, got.content)

    def exchange(self, one: Exchange[Answered]) -> Answered:
        """Send one request, trying again while the desk is away."""
        return self.run(retries.send(self.patience, one))

    def suspend(self, body: JsonObject, key: str | None = None) -> Suspension:
        """Have calls judged, as `POST /api/v1/suspensions` says; the same key again leads to the same suspension."""
        return self.run(retries.send(self.patience, exchanges.ask_for_calls(body, key)))

    def find(self, suspension_id: str) -> Suspension:
        """Return a suspension as it stands."""
        return self.run(retries.send(self.patience, exchanges.find_suspension(suspension_id)))

    def wait(self, suspension_id: str, wait_s: float | None = None) -> Suspension:
        """Return the suspension once it is decided, through any restart of the desk; or as it stands after `wait_s`."""
        return self.run(retries.await_decision(self.patience, suspension_id, wait_s))

    def waiting(self, status: str = "pending", skip: int = 0, limit: int = 50) -> SuspensionPage:
        """Return what waits for people, or with `decided` what did."""
        return self.run(retries.send(self.patience, exchanges.list_suspensions(status, skip, limit)))

    def decide(
        self, suspension_id: str, item: ItemSeen, action: str, *, key: str | None = None, **given: JsonValue
    ) -> DecidedItem:
        """Give a word on exactly the item that was seen; `args`, `value` and `message` go with it."""
        word = write_word(item, action, given)
        return self.run(retries.send(self.patience, exchanges.decide(suspension_id, item.item_id, word, key)))

    def start_run(
        self,
        agent: str,
        text: str,
        *,
        title: str | None = None,
        context: JsonObject | None = None,
        key: str | None = None,
    ) -> Run:
        """Start a run of a registered agent."""
        return self.run(retries.send(self.patience, exchanges.start_run(agent, text, title, context or {}, key)))

    def find_run(self, run_id: str) -> Run:
        """Return a run as it stands."""
        return self.run(retries.send(self.patience, exchanges.find_run(run_id)))

    def await_run(self, run_id: str, wait_s: float | None = None) -> Run:
        """Return the run once it has ended; or as it stands after `wait_s`."""
        return self.run(retries.await_end(self.patience, run_id, wait_s))

    def runs(self, status: str | None = None, skip: int = 0, limit: int = 50) -> RunPage:
        """Return the newest runs."""
        return self.run(retries.send(self.patience, exchanges.list_runs(status, skip, limit)))

    def events(self, run_id: str, after: int = 0) -> Iterator[RunEvent]:
        """Yield the run's events so far, in order, behind a number."""
        while True:
            page = self.run(retries.send(self.patience, exchanges.list_events(run_id, after, _PAGE)))
            yield from page.events
            if not page.events:
                return
            after = page.next_after

    def tell(
        self,
        run_id: str,
        source_format: str,
        events: Sequence[JsonObject],
        *,
        source: str = "agent",
        first_seq: int = 1,
        at: Sequence[datetime | None] = (),
    ) -> ExternalEventsSeen:
        """Tell what happened to a run, in its dialect; sent again under the same numbers it is kept once.

        `at` has the moment of each event, for dialects whose events do not say it.
        """
        one = exchanges.report_events(run_id, source_format, events, source, first_seq, at)
        return self.run(retries.send(self.patience, one))

    def cancel(self, run_id: str, reason: str | None = None, *, key: str | None = None) -> Run:
        """End a run for good."""
        return self.run(retries.send(self.patience, exchanges.cancel_run(run_id, reason, key)))


class AsyncClient(_Caller, AsyncKeyCalls, AsyncPolling):
    """The desk as one credential sees it, for asyncio; use one in one event loop."""

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
        self._http = httpx.AsyncClient(transport=transport)
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """Do what a flow says, to its end."""
        answer: Any = None
        try:
            while True:
                step = flow.send(answer)
                answer = await (self._sleep(step.s) if isinstance(step, Pause) else self._send(step))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _send(self, step: Send) -> Answer | Lost:
        try:
            got = await self._http.request(**self._request(step.exchange))
        except httpx.TransportError as error:
            return Lost(_tell(error))
        return Answer(got.status_code, got.headers, got.content)

    async def exchange(self, one: Exchange[Answered]) -> Answered:
        """Send one request, trying again while the desk is away."""
        return await self.run(retries.send(self.patience, one))

    async def suspend(self, body: JsonObject, key: str | None = None) -> Suspension:
        """Have calls judged, as `POST /api/v1/suspensions` says; the same key again leads to the same suspension."""
        return await self.run(retries.send(self.patience, exchanges.ask_for_calls(body, key)))

    async def find(self, suspension_id: str) -> Suspension:
        """Return a suspension as it stands."""
        return await self.run(retries.send(self.patience, exchanges.find_suspension(suspension_id)))

    async def wait(self, suspension_id: str, wait_s: float | None = None) -> Suspension:
        """Return the suspension once it is decided, through any restart of the desk; or as it stands after `wait_s`."""
        return await self.run(retries.await_decision(self.patience, suspension_id, wait_s))

    async def waiting(self, status: str = "pending", skip: int = 0, limit: int = 50) -> SuspensionPage:
        """Return what waits for people, or with `decided` what did."""
        return await self.run(retries.send(self.patience, exchanges.list_suspensions(status, skip, limit)))

    async def decide(
        self, suspension_id: str, item: ItemSeen, action: str, *, key: str | None = None, **given: JsonValue
    ) -> DecidedItem:
        """Give a word on exactly the item that was seen; `args`, `value` and `message` go with it."""
        word = write_word(item, action, given)
        return await self.run(retries.send(self.patience, exchanges.decide(suspension_id, item.item_id, word, key)))

    async def start_run(
        self,
        agent: str,
        text: str,
        *,
        title: str | None = None,
        context: JsonObject | None = None,
        key: str | None = None,
    ) -> Run:
        """Start a run of a registered agent."""
        return await self.run(retries.send(self.patience, exchanges.start_run(agent, text, title, context or {}, key)))

    async def find_run(self, run_id: str) -> Run:
        """Return a run as it stands."""
        return await self.run(retries.send(self.patience, exchanges.find_run(run_id)))

    async def await_run(self, run_id: str, wait_s: float | None = None) -> Run:
        """Return the run once it has ended; or as it stands after `wait_s`."""
        return await self.run(retries.await_end(self.patience, run_id, wait_s))

    async def runs(self, status: str | None = None, skip: int = 0, limit: int = 50) -> RunPage:
        """Return the newest runs."""
        return await self.run(retries.send(self.patience, exchanges.list_runs(status, skip, limit)))

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[RunEvent]:
        """Yield the run's events so far, in order, behind a number."""
        while True:
            page = await self.run(retries.send(self.patience, exchanges.list_events(run_id, after, _PAGE)))
            for event in page.events:
                yield event
            if not page.events:
                return
            after = page.next_after

    async def tell(
        self,
        run_id: str,
        source_format: str,
        events: Sequence[JsonObject],
        *,
        source: str = "agent",
        first_seq: int = 1,
        at: Sequence[datetime | None] = (),
    ) -> ExternalEventsSeen:
        """Tell what happened to a run, in its dialect; sent again under the same numbers it is kept once.

        `at` has the moment of each event, for dialects whose events do not say it.
        """
        one = exchanges.report_events(run_id, source_format, events, source, first_seq, at)
        return await self.run(retries.send(self.patience, one))

    async def cancel(self, run_id: str, reason: str | None = None, *, key: str | None = None) -> Run:
        """End a run for good."""
        return await self.run(retries.send(self.patience, exchanges.cancel_run(run_id, reason, key)))


def write_word(item: ItemSeen, action: str, given: JsonObject) -> JsonObject:
    """Return a decision about exactly the item that was seen."""
    return {"action": action, "digest": item.digest, **given}


def _check_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidInput(f"{url!r} is no address: {error}. Write it as {URL}.") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"{url!r} is no address of a desk. Write it as {URL}.")
    return url.rstrip("/")


def _tell(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no answer came in time"
    return str(error) or type(error).__name__
