"""Connections of HTTP clients, bounded in size and time: uvicorn has no limit on a head and no time for a request."""

import asyncio
from http import HTTPStatus
from typing import Any

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.settings.limits import LimitSettings

SLOWEST_BYTES_S = 1_024
"""Bytes a second at which a body must arrive once its first `request_timeout_s` are over."""

_LINE_EXTRA = 4
"""A header's colon, space and line end; the parser reports the name and the value alone."""

_LOG = structlog.get_logger(__name__)


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with our limits; every server that Sayso starts is built from it."""

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
    """A connection whose requests are refused when their head is too long, or when they arrive too slowly.

    One timer runs while a request is expected or incomplete. None runs while a complete request is being answered, nor
    on an idle connection: that is uvicorn's keep-alive.
    """

    def __init__(self, config: ServerConfig, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        self._limits = config.limits
        self._timer: asyncio.TimerHandle | None = None
        self._incomplete = self._in_head = False
        self._refused = False
        self._unparsed_bytes = 0
        self._body_bytes = 0
        self._began_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a first request."""
        super().connection_made(transport)
        self._begin_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop every timer; uvicorn keeps that of a connection which was reset."""
        self._end_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data, then check the head's size and whether the request is still incomplete."""
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
        """Note that a request has begun."""
        self._incomplete = self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Refuse a head that is too long; else count anew, for a body is bounded elsewhere."""
        head = sum(len(name) + len(value) + _LINE_EXTRA for name, value in self.headers)
        if len(self.url) + head > self._limits.head_limit_bytes:
            self._refuse_head()
        if self._refused:
            return
        self._in_head = False
        self._unparsed_bytes = self._body_bytes = 0
        self._began_s = self.loop.time()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self._refused:
            return
        self._unparsed_bytes = 0
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete; a connection whose answer was faster than its request is idle now."""
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
        """Return whether the client has to send something: an incomplete request, or the first one."""
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
        if self.flow.read_paused:  # the service does not read just now, so the client is not late
            self._begin_timer()
            return
        due_s = self._began_s + self._limits.request_timeout_s + self._body_bytes / SLOWEST_BYTES_S
        if self.loop.time() < due_s:
            self._timer = self.loop.call_at(due_s, self._check_time)
        else:
            self._refuse_late()

    def _refuse_late(self) -> None:
        limit_s = self._limits.request_timeout_s
        _LOG.debug("request_too_slow", client=self.client, limit_s=limit_s)
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"The request did not arrive within {limit_s} s. Send it again.")

    def _refuse_head(self) -> None:
        limit = self._limits.head_limit_bytes
        said = f"The request's line and headers are over {limit} bytes. Send less."
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, said)

    def _refuse(self, status: HTTPStatus, said: str) -> None:
        """Answer if the client has begun a request and waits for no other answer; close the connection."""
        self._refused = True
        self._end_timer()
        if self._may_answer():
            content = said.encode("ascii")
            head = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(content)}\r\nconnection: close\r\n"
            self.transport.write(STATUS_LINE[status] + head.encode("ascii") + b"\r\n" + content)
        self.transport.close()

    def _may_answer(self) -> bool:
        """Return whether an answer to the incomplete request would be the next one on this connection."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._in_head:
            return cycle is None or cycle.response_complete
        return self._incomplete and cycle is not None and not cycle.response_started and not self.pipeline
