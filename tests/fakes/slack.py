"""A small Slack: its Web API, response addresses, Socket Mode, and the people of the workspace.

It runs in a thread of its own. People press, submit and type through the methods of `FakeSlack`, which return what
Slack would send to an app; `sign` makes the headers of an HTTP request, and `push` sends over a socket.
"""

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import WSMsgType, web

from launch.stops import wait_until
from tests.fakes.slack_api import ANNA, APP, ROOM, TEAM, Message, WebApi
from tests.service.channels.conformance import Shown

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


@dataclass
class FakeSlack(WebApi):
    """A workspace with people in it, and everything that was said to them."""

    responses: list[dict[str, Any]] = field(default_factory=list)
    acks: list[dict[str, Any]] = field(default_factory=list)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop | None = None
    _answers: dict[str, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.join(ANNA)

    # What a test asks for.

    def join(self, user: str, **fields: Any) -> str:
        """Add a member of the workspace."""
        self.people[user] = {"id": user, "team_id": TEAM, "name": user.lower(), "deleted": False, **fields}
        return user

    def cards(self, address: str) -> list[Shown]:
        """Return the messages of a room or of a person's conversation."""
        place = f"D{address}" if address.startswith("U") else address
        found = [one for one in self.messages if one.channel == place]
        return [Shown(one.screen, set(one.buttons) - {"sayso:open"} != set()) for one in found]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        """Refuse every call."""
        self.refusal = (status, retry_after_s)

    def remove(self, address: str) -> None:
        """Forget an address."""
        self.removed.add(address)

    # What people do.

    def press(self, message: Message, action: str, user: str = ANNA, **fields: Any) -> dict[str, Any]:
        """Return what Slack sends when somebody presses a button of a message."""
        pressed = message.buttons[action]
        return {
            "type": "block_actions",
            "user": {"id": user, "username": user.lower(), "name": user.lower(), "team_id": TEAM},
            "api_app_id": APP,
            "token": "deprecated",
            "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel},
            "trigger_id": self._trigger(),
            "team": {"id": TEAM, "domain": "sayso"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": message.channel, "name": "ops"},
            "message": {"type": "message", "ts": message.ts, "text": message.text, "blocks": message.blocks},
            "response_url": f"{self.url}/hooks/actions/{next(self._numbers)}",
            "actions": [{**pressed, "block_id": "b1", "action_ts": f"{time.time():.6f}{next(self._numbers)}"}],
            **fields,
        }

    def submit(self, view: dict[str, Any], user: str = ANNA, **typed: str | None) -> dict[str, Any]:
        """Return what Slack sends when somebody submits a modal, with some inputs changed, by label."""
        values: dict[str, Any] = {}
        for block in view["blocks"]:
            if block["type"] != "input":
                continue
            element, label = block["element"], block["label"]["text"]
            if element["type"] == "static_select":
                chosen = element.get("initial_option")
                if label in typed:
                    chosen = next(one for one in element["options"] if one["text"]["text"] == typed[label])
                typed_in: dict[str, Any] = {"type": "static_select", "selected_option": chosen}
            else:
                typed_in = {"type": "plain_text_input", "value": typed.get(label, element.get("initial_value"))}
            values[block["block_id"]] = {element["action_id"]: typed_in}
        return {
            "type": "view_submission",
            "team": {"id": TEAM, "domain": "sayso"},
            "user": {"id": user, "username": user.lower(), "team_id": TEAM},
            "api_app_id": APP,
            "token": "deprecated",
            "trigger_id": self._trigger(),
            "view": {**view, "state": {"values": values}, "team_id": TEAM, "app_id": APP},
            "response_urls": [],
            "is_enterprise_install": False,
            "enterprise": None,
        }

    def command(self, text: str, user: str = ANNA, **fields: str) -> dict[str, str]:
        """Return the fields of `/sayso text`."""
        known = {"token": "deprecated", "team_id": TEAM, "team_domain": "sayso", "channel_id": ROOM}
        known |= {"user_id": user, "user_name": user.lower(), "command": "/sayso", "text": text, "api_app_id": APP}
        known |= {"response_url": f"{self.url}/hooks/commands/{next(self._numbers)}", "trigger_id": self._trigger()}
        return {**known, "is_enterprise_install": "false", **fields}

    def event(self, event: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Return the envelope of an event."""
        known = {"token": "deprecated", "team_id": TEAM, "api_app_id": APP, "event": event, "type": "event_callback"}
        return {**known, "event_id": f"Ev{next(self._numbers)}", "event_time": int(time.time()), **fields}

    def modal(self) -> dict[str, Any]:
        """Return the modal that was opened last."""
        return list(self.views.values())[-1]

    async def push(self, kind: str, payload: dict[str, Any], wait_s: float = 10) -> dict[str, Any]:
        """Send an envelope over the newest socket, and return the app's acknowledgement."""
        envelope = f"env-{next(self._numbers)}"
        body = json.dumps({"envelope_id": envelope, "type": kind, "accepts_response_payload": True, "payload": payload})

        async def exchange() -> dict[str, Any]:
            answer = self._answers[envelope] = asyncio.get_running_loop().create_future()
            await self.sockets[-1].send_str(body)
            return await asyncio.wait_for(answer, wait_s)

        assert self.loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(exchange(), self.loop))

    def drop_sockets(self, *, politely: bool) -> None:
        """End every socket, as Slack does every few hours."""

        async def drop() -> None:
            for socket in [*self.sockets]:
                if politely:
                    await socket.send_str(json.dumps({"type": "disconnect", "reason": "refresh_requested"}))
                else:
                    await socket.close()

        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(drop(), self.loop).result(10)

    async def take_response(self, request: web.Request) -> web.Response:
        """Take what an app says to one person."""
        self.responses.append({**await request.json(), "path": request.path})
        return web.Response(text="ok")

    async def link(self, request: web.Request) -> web.WebSocketResponse:
        """Hold a socket of Socket Mode."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "hello", "num_connections": 1, "connection_info": {"app_id": APP}}))
        self.sockets.append(socket)
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    ack = json.loads(message.data)
                    self.acks.append(ack)
                    if answer := self._answers.pop(ack["envelope_id"], None):
                        answer.set_result(ack)
        finally:
            self.sockets.remove(socket)
        return socket


def sign(body: bytes, secret: str = SIGNING_SECRET, at_s: int | None = None) -> dict[str, str]:
    """Return the headers with which Slack signs a request."""
    at = str(int(time.time()) if at_s is None else at_s)
    digest = hmac.new(secret.encode(), b"v0:" + at.encode() + b":" + body, hashlib.sha256).hexdigest()
    form = "application/x-www-form-urlencoded"
    return {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={digest}", "Content-Type": form}


def form_of(payload: dict[str, Any]) -> bytes:
    """Return the body of an interaction."""
    return urlencode({"payload": json.dumps(payload)}).encode()


@contextmanager
def running_slack() -> Iterator[FakeSlack]:
    """Serve a workspace on a free port."""
    slack = FakeSlack()
    stopping: list[Callable[[], object]] = []

    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", slack.serve)
        app.router.add_post("/hooks/{kind}/{number}", slack.take_response)
        app.router.add_get("/link", slack.link)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        slack.loop = loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        stopping.append(lambda: loop.call_soon_threadsafe(stop.set))
        slack.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert wait_until(lambda: bool(slack.url), 30)
        yield slack
    finally:
        stopping[0]()
        thread.join()
