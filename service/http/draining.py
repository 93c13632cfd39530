"""The time between a signal to stop and the end: answers tell clients to use another connection."""

from asyncio import Event

from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CLOSE = (b"connection", b"close")


def is_closing(state: State) -> bool:
    """Return whether the process of an app has begun to stop."""
    closing: Event | None = getattr(state, "closing", None)
    return closing is not None and closing.is_set()


class Draining:
    """Closes connections behind their answers once the process has begun to stop, so that none is cut in a request."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def close_behind(message: Message) -> None:
            if message["type"] == "http.response.start" and is_closing(self._state):
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
            await send(message)

        await self._app(scope, receive, close_behind if scope["type"] == "http" else send)
