"""Slack's Web API over a workspace in memory: tokens, rate limits and limits of blocks."""

import base64
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.slack_blocks import find_message_faults, find_view_faults, list_buttons, read_screen

BOT_TOKEN = "xoxb-1-fake-bot-token"
APP_TOKEN = "xapp-1-fake-app-token"
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
class WebApi:
    """The state of the workspace, and what the API does to it."""

    url: str = ""
    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    homes: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    refusal: tuple[int, int] = (0, 0)
    errors: dict[str, str] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    bot_tokens: set[str] = field(default_factory=lambda: {BOT_TOKEN})
    installed: dict[str, Any] = field(default_factory=dict)
    opened: int = 0
    _seen: dict[tuple[str, str], Message] = field(default_factory=dict)
    _used: dict[str, list[float]] = field(default_factory=dict)
    _triggers: dict[str, float] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

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
        free = len(used) < per_minute
        self._used[name] = [*used, now] if free else used
        return free

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
