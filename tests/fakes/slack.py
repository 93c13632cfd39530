"""A small Slack: its Web API with tokens, rate limits and limits of blocks, response addresses and Socket Mode.

It runs in a thread of its own. People press, submit and type through the methods of `FakeSlack`, which return what
Slack would send to an app; `sign` makes the headers of an HTTP request, and `push` sends over a socket.
"""

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import WSMsgType, web

from launch.waits import wait_until
from tests.fakes.slack_blocks import find_message_faults, find_view_faults, list_buttons, read_screen
from tests.service.channels.conformance import Shown

BOT_TOKEN = "xoxb-1-fake-bot-token"
APP_TOKEN = "xapp-1-fake-app-token"
SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
CLIENT_ID, CLIENT_SECRET = "11.22", "fake-client-secret"
APP, TEAM, ROOM = "A0SAYSO", "T0TEAM", "C0OPS"
ANNA = "U0ANNA"
TRIGGER_S = 3.0

PER_MINUTE = {"chat.postMessage": 60, "chat.update": 50, "users.info": 100, "conversations.open": 50, "views.open": 100}
"""Slack's tiers, a minute; `chat.postMessage` for each channel."""


@dataclass
class Message:
    """A message as the workspace holds it."""

    channel: str
    ts: str
    text: str
    blocks: list[dict[str, Any]]
    thread_ts: str | None = None
    updates: int = 0

    @property
    def screen(self) -> str:
        return read_screen(self.blocks) if self.blocks else self.text

    @property
    def buttons(self) -> dict[str, dict[str, Any]]:
        return {one["action_id"]: one for one in list_buttons(self.blocks)}


class Refused(Exception):
    """An error of the API."""


@dataclass
class FakeSlack:
    """The state of the workspace, and everything that was said to people."""

    url: str = ""
    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    homes: dict[str, dict[str, Any]] = field(default_factory=dict)
    responses: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    acks: list[dict[str, Any]] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    refusal: tuple[int, int] = (0, 0)
    errors: dict[str, str] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    bot_tokens: set[str] = field(default_factory=lambda: {BOT_TOKEN})
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    installed: dict[str, Any] = field(default_factory=dict)
    opened: int = 0
    loop: asyncio.AbstractEventLoop | None = None
    _seen: dict[tuple[str, str], Message] = field(default_factory=dict)
    _used: dict[str, list[float]] = field(default_factory=dict)
    _triggers: dict[str, float] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

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

        async def send() -> None:
            await self.sockets[-1].send_str(body)

        assert self.loop is not None
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(send(), self.loop))
        async with asyncio.timeout(wait_s):
            while not (found := [one for one in self.acks if one["envelope_id"] == envelope]):  # noqa: ASYNC110
                await asyncio.sleep(0)
        return found[0]

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

    # The Web API.

    async def serve(self, request: web.Request) -> web.Response:
        """Answer a call of the API."""
        method = request.match_info["method"]
        self.calls.append(method)
        status, wait_s = self.refusal
        if status:
            headers = {"Retry-After": str(wait_s)} if wait_s else {}
            return web.json_response({"ok": False, "error": "ratelimited"}, status=status, headers=headers)
        if request.content_type == "application/json":
            fields: dict[str, Any] = await request.json()
        else:
            fields = {key: str(value) for key, value in {**request.query, **await request.post()}.items()}
        try:
            if method in self.errors:
                raise Refused(self.errors[method])
            self._authorize(method, request, fields)
            if not self._has_capacity(f"{method} {fields.get('channel', '')}", PER_MINUTE.get(method, 100)):
                headers = {"Retry-After": "30"}
                return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
            action: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{method.replace('.', '_')}")
            return web.json_response({"ok": True, **action(fields)})
        except Refused as error:
            return web.json_response({"ok": False, "error": str(error)})

    def _authorize(self, method: str, request: web.Request, fields: dict[str, Any]) -> None:
        if method == "oauth.v2.access":
            basic = base64.b64decode(request.headers.get("Authorization", "").removeprefix("Basic ")).decode()
            if basic != f"{CLIENT_ID}:{CLIENT_SECRET}":
                raise Refused("bad_client_secret")
            return
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or fields.get("token", "")
        if not token:
            raise Refused("not_authed")
        if token not in ({APP_TOKEN} if method == "apps.connections.open" else self.bot_tokens):
            raise Refused("invalid_auth")

    def _has_capacity(self, name: str, per_minute: int) -> bool:
        now = time.monotonic()
        used = [one for one in self._used.get(name, []) if one > now - 60]
        self._used[name] = [*used, now]
        return len(used) < per_minute

    def _chat_postMessage(self, fields: dict[str, Any]) -> dict[str, Any]:
        self._check_place(fields["channel"])
        seen = (fields["channel"], fields.get("client_msg_id", ""))
        if seen[1] and seen in self._seen:
            return {"channel": seen[0], "ts": self._seen[seen].ts}
        thread = fields.get("thread_ts")
        if thread and not any(one.ts == thread and one.channel == fields["channel"] for one in self.messages):
            raise Refused("thread_not_found")
        message = Message(fields["channel"], f"17000.{next(self._numbers):06}", *self._read_message(fields), thread)
        self.messages.append(message)
        self._seen[seen] = message
        return {"channel": message.channel, "ts": message.ts}

    def _chat_update(self, fields: dict[str, Any]) -> dict[str, Any]:
        self._check_place(fields["channel"])
        wanted = (fields["channel"], fields["ts"])
        found = next((one for one in self.messages if (one.channel, one.ts) == wanted), None)
        if found is None:
            raise Refused("message_not_found")
        found.text, found.blocks = self._read_message(fields)
        found.updates += 1
        return {"channel": found.channel, "ts": found.ts, "text": found.text}

    def _read_message(self, fields: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        blocks = fields.get("blocks")
        blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
        faults = find_message_faults({**fields, "blocks": blocks})
        if faults:
            raise Refused("invalid_blocks" if "msg_blocks_too_long" not in faults else "msg_blocks_too_long")
        return fields.get("text", ""), blocks or []

    def _check_place(self, channel: str) -> None:
        if channel in self.removed or channel.removeprefix("D") in self.removed or channel[:1] not in "CDG":
            raise Refused("channel_not_found")

    def _conversations_open(self, fields: dict[str, Any]) -> dict[str, Any]:
        user = fields["users"]
        person = self.people.get(user)
        if person is None or user in self.removed:
            raise Refused("user_not_found")
        if person["deleted"]:
            raise Refused("user_disabled")
        return {"channel": {"id": f"D{user}"}}

    def _users_info(self, fields: dict[str, Any]) -> dict[str, Any]:
        if fields["user"] not in self.people:
            raise Refused("user_not_found")
        return {"user": self.people[fields["user"]]}

    def _views_open(self, fields: dict[str, Any]) -> dict[str, Any]:
        began = self._triggers.pop(fields["trigger_id"], None)
        if began is None or time.monotonic() - began > TRIGGER_S:
            raise Refused("expired_trigger_id" if began else "exchanged_trigger_id")
        return self._save_view(f"V{next(self._numbers)}", fields)

    def _views_update(self, fields: dict[str, Any]) -> dict[str, Any]:
        if fields["view_id"] not in self.views:
            raise Refused("not_found")
        return self._save_view(fields["view_id"], fields)

    def _save_view(self, view_id: str, fields: dict[str, Any]) -> dict[str, Any]:
        view = fields["view"]
        view = json.loads(view) if isinstance(view, str) else view
        if find_view_faults(view):
            raise Refused("invalid_arguments")
        self.views[view_id] = {**view, "id": view_id}
        return {"view": self.views[view_id]}

    def _views_publish(self, fields: dict[str, Any]) -> dict[str, Any]:
        view = fields["view"]
        view = json.loads(view) if isinstance(view, str) else view
        if find_view_faults(view) or view["type"] != "home":
            raise Refused("invalid_arguments")
        self.homes[fields["user_id"]] = view
        return {"view": view}

    def _auth_test(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"team_id": TEAM, "user_id": "U0BOT", "bot_id": "B0BOT", "team": "Sayso"}

    def _oauth_v2_access(self, fields: dict[str, Any]) -> dict[str, Any]:
        token = self.codes.pop(fields.get("code", ""), None)
        if token is None:
            raise Refused("invalid_code")
        self.bot_tokens.add(token)
        known = {"access_token": token, "token_type": "bot", "app_id": APP, "team": {"id": TEAM, "name": "Sayso"}}
        return {**known, **self.installed}

    def _apps_connections_open(self, _: dict[str, Any]) -> dict[str, Any]:
        self.opened += 1
        return {"url": f"{self.url.replace('http', 'ws', 1)}/link?ticket={next(self._numbers)}"}

    def _trigger(self) -> str:
        name = f"{next(self._numbers)}.trigger"
        self._triggers[name] = time.monotonic()
        return name

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
                    self.acks.append(json.loads(message.data))
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
