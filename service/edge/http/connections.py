"""HTTP connections with limits on head size and request time, which uvicorn lacks."""

import asyncio
from http import HTTPStatus
from typing import Any, cast

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.core.settings.limits import LimitSettings
from service.core.store.connection.pipeline import JoinedWrites

SLOWEST_BYTES_S = 1_024  # minimum bytes a second of a body after its first `request_timeout_s`
_DRAINED_BYTES = 8 * 1024 * 1024  # of a body after its response; clients that still send do not read a response
_LINE_EXTRA = 4  # bytes of a header's colon, space and line end, which the parser omits
_LOG = structlog.get_logger(__name__)


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with our limits, for every server that Sayso starts."""

    def __init__(self, app: Any, limits: LimitSettings, **options: Any) -> None:
        self.limits = limits
        super().__init__(
            app,
            loop="uvloop",
            http=BoundedRequests,
            server_header=False,
            timeout_keep_alive=limits.keep_alive_s,
            **options,
        )


class BoundedRequests(HttpToolsProtocol):
    """A connection that refuses too large heads and too slow requests. uvicorn's keep-alive covers idle ones."""

    def __init__(self, config: ServerConfig, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        self._limits = config.limits
        self._timer: asyncio.TimerHandle | None = None
        self._incomplete = self._in_head = self._refused = False
        self._unparsed_bytes = self._body_bytes = self._drained_bytes = 0
        self._began_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = cast(asyncio.Transport, JoinedWrites(transport))  # uvicorn writes head and body apart
        self._begin_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timers; uvicorn keeps the timer of a reset connection."""
        self._end_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            self._end_timer()
        elif self._unparsed_bytes > self._limits.head_limit_bytes:
            self._refuse_head()
        elif not self._expects_more():
            self._end_timer()
        elif self._timer is None:
            self._begin_timer()

    def on_message_begin(self) -> None:
        self._incomplete = self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Refuse too large a head; otherwise reset the counters for the body."""
        head = sum(len(name) + len(value) + _LINE_EXTRA for name, value in self.headers)
        if len(self.url) + head > self._limits.head_limit_bytes:
            self._refuse_head()
        if self._refused:
            return
        self._in_head = False
        self._unparsed_bytes = self._body_bytes = self._drained_bytes = 0
        self._began_s = self.loop.time()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._refused:
            return
        self._unparsed_bytes = 0
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._drained_bytes += len(body)
            if self._drained_bytes > _DRAINED_BYTES:
                self._refused = True
                self._end_timer()
                self.transport.close()
            return
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Drop what the app did not read of the body."""
        if self.cycle.response_complete:  # otherwise it is that of a request that follows in the same packet
            self.cycle.body = bytearray()
        super().on_response_complete()

    def on_message_complete(self) -> None:
        """Record the end of the request; start keep-alive if its response is already complete."""
        self._incomplete = False
        if self._refused:
            return
        self._body_bytes = 0
        super().on_message_complete()
        if self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _expects_more(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        if self._incomplete or cycle is None:
            return True
        return cycle.response_complete and self.timeout_keep_alive_task is None

    def _begin_timer(self) -> None:
        self._began_s = self.loop.time()
        self._timer = self.loop.call_later(self._limits.request_timeout_s, self._check_time)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_time(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:  # the service is not reading, so the client is not late
            self._begin_timer()
            return
        limit_s = self._limits.request_timeout_s
        due_s = self._began_s + limit_s + self._body_bytes / SLOWEST_BYTES_S
        if self.loop.time() < due_s:
            self._timer = self.loop.call_at(due_s, self._check_time)
            return
        _LOG.debug("request_too_slow", client=self.client, limit_s=limit_s)
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"The request did not arrive within {limit_s} s. Send it again.")

    def _refuse_head(self) -> None:
        limit = self._limits.head_limit_bytes
        reason = f"The request line and headers are over {limit} bytes. Send less."
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reason)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Respond if this is the next response on the connection; then close it."""
        self._refused = True
        self._end_timer()
        if self._may_respond():
            content = reason.encode("ascii")
            head = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(content)}\r\nconnection: close\r\n"
            self.transport.write(STATUS_LINE[status] + head.encode("ascii") + b"\r\n" + content)
        self.transport.close()

    def _may_respond(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        if self._in_head:
            return cycle is None or cycle.response_complete
        return self._incomplete and cycle is not None and not cycle.response_started and not self.pipeline
