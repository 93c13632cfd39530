"""Telegram's bot API, as a small program: strict about tokens, fields, markup and limits as the real one is."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fakes.serving import serving
from tests.service.channels.conformance import Shown

TOKEN = "123456:AAE-fake_token_of_the_bot_for_tests"
BOT = {"id": 123456, "is_bot": True, "first_name": "Sayso", "username": "sayso_bot"}
_MESSAGE = {"chat_id", "text", "parse_mode", "link_preview_options", "reply_markup"}
_FIELDS = {
    "sendMessage": (_MESSAGE | {"reply_parameters"}, {"chat_id", "text"}),
    "editMessageText": (_MESSAGE | {"message_id"}, {"chat_id", "message_id", "text"}),
    "answerCallbackQuery": ({"callback_query_id", "text", "show_alert"}, {"callback_query_id"}),
    "getUpdates": ({"offset", "timeout", "allowed_updates"}, set()),
}
_TAGS = {"b", "i", "code", "pre", "blockquote"}
_LITERAL = {"code", "pre"}
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


class Refusal(Exception):
    """An answer that says what is wrong."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status


@dataclass
class Message:
    """A message of the bot in a chat."""

    chat_id: int
    message_id: int
    text: str
    markup: dict[str, Any]
    reply_to: int | None = None
    edits: int = 0

    @property
    def buttons(self) -> dict[str, dict[str, str]]:
        """The buttons by their text."""
        return {one["text"]: one for row in self.markup.get("inline_keyboard", []) for one in row}

    @property
    def data(self) -> dict[str, str]:
        """What the buttons carry that lead to the bot, by their text."""
        return {text: one["callback_data"] for text, one in self.buttons.items() if "callback_data" in one}


@dataclass
class Telegram:
    """Chats, messages and updates, which tests read and write from their own thread."""

    url: str = ""
    chats: set[int] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    messages: list[Message] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, tuple[str, bool]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    requests: int = 0
    refusal: tuple[int, int] = (0, 0)
    changed: threading.Condition = field(default_factory=threading.Condition)
    closed: bool = False
    polls: int = 0
    _next_id: int = 100

    def cards(self, address: str) -> list[Shown]:
        return [Shown(one.text, bool(one.data)) for one in self.messages if one.chat_id == int(address)]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        self.refusal = (status, retry_after_s)

    def remove(self, address: str) -> None:
        self.chats.discard(int(address))

    def press(self, message: Message, button: str, *, data: str = "", by: int = 0, chat: str = "private") -> str:
        """Press a button, or send other `data` as a changed program can; return the id of the press."""
        with self.changed:
            press_id = str(self._take_id())
            self.waiting.add(press_id)
            where = {"message_id": message.message_id, "date": 1, "chat": {"id": message.chat_id, "type": chat}}
            query = {"id": press_id, "from": self._person(by or message.chat_id), "message": where}
            self._add("callback_query", {**query, "chat_instance": "1", "data": data or message.data[button]})
            return press_id

    def say(self, chat_id: int, text: str, *, reply_to: int | None = None, chat: str = "private") -> int:
        """Send a message to the bot; return its id."""
        with self.changed:
            message_id = self._take_id()
            reply = {"reply_to_message": {"message_id": reply_to, "from": BOT}} if reply_to is not None else {}
            where = {"id": chat_id, "type": chat}
            sent = {"message_id": message_id, "date": 1, "from": self._person(chat_id), "chat": where, "text": text}
            self._add("message", {**sent, **reply})
            return message_id

    def answered(self, press_id: str) -> bool:
        """Return once a press is answered; False after ten seconds."""
        with self.changed:
            return self.changed.wait_for(lambda: press_id in self.answers, 10)

    def sent(self, count: int) -> bool:
        """Return once the bot has sent that many messages; False after ten seconds."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.messages) >= count, 10)

    def requested(self, count: int) -> bool:
        """Return once the bot has made that many requests; False after ten seconds."""
        with self.changed:
            return self.changed.wait_for(lambda: self.requests >= count, 10)

    async def serve(self, request: Request) -> Response:
        try:
            return JSONResponse({"ok": True, "result": await self._answer(request)})
        except Refusal as refusal:
            body: dict[str, Any] = {"ok": False, "error_code": refusal.status, "description": str(refusal)}
            if refusal.status == 429:
                body["parameters"] = {"retry_after": self.refusal[1]}
            return JSONResponse(body, refusal.status)

    async def _answer(self, request: Request) -> Any:
        with self.changed:
            self.requests += 1
            self.changed.notify_all()
        status, wait_s = self.refusal
        if status:
            raise Refusal(status, f"Too Many Requests: retry after {wait_s}" if status == 429 else "Bad Gateway")
        if request.path_params["token"] != TOKEN:
            raise Refusal(401, "Unauthorized")
        method = request.path_params["method"]
        if method not in _FIELDS:
            raise Refusal(404, "Not Found")
        fields = await request.json()
        known, required = _FIELDS[method]
        if not required <= set(fields) <= known:
            raise Refusal(400, f"Bad Request: fields {sorted(set(fields) ^ required)} do not fit {method}")
        if method == "getUpdates":
            return await asyncio.to_thread(self._list_updates, fields)
        with self.changed:
            result = {"sendMessage": self._send, "editMessageText": self._edit}.get(method, self._end_press)(fields)
            self.changed.notify_all()
        return result

    def _list_updates(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        with self.changed:
            if self.polls:
                raise Refusal(409, "Conflict: terminated by other getUpdates request")
            self.polls += 1
            try:
                self.updates = [one for one in self.updates if one["update_id"] >= fields.get("offset", 0)]
                self.changed.wait_for(lambda: self.updates or self.closed, fields.get("timeout", 0))
                return self.updates[:100]
            finally:
                self.polls -= 1

    def _send(self, fields: dict[str, Any]) -> dict[str, Any]:
        chat_id = self._check_chat(fields)
        text, markup = check_text(fields), check_markup(fields.get("reply_markup", {}))
        reply_to = fields.get("reply_parameters", {}).get("message_id")
        message = Message(chat_id, self._take_id(), text, markup, reply_to)
        self.messages.append(message)
        return {"message_id": message.message_id, "date": 1, "chat": {"id": chat_id, "type": "private"}, "text": text}

    def _edit(self, fields: dict[str, Any]) -> dict[str, Any]:
        chat_id = self._check_chat(fields)
        text, markup = check_text(fields), check_markup(fields.get("reply_markup", {}))
        for one in self.messages:
            if (one.chat_id, one.message_id) == (chat_id, fields["message_id"]):
                if (one.text, one.markup) == (text, markup):
                    raise Refusal(400, "Bad Request: message is not modified: specified new message content")
                one.text, one.markup, one.edits = text, markup, one.edits + 1
                return {"message_id": one.message_id, "date": 1, "chat": {"id": chat_id, "type": "private"}}
        raise Refusal(400, "Bad Request: message to edit not found")

    def _end_press(self, fields: dict[str, Any]) -> bool:
        press_id, text = fields["callback_query_id"], fields.get("text", "")
        if press_id not in self.waiting:
            raise Refusal(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        if len(text) > 200:
            raise Refusal(400, "Bad Request: MESSAGE_TOO_LONG")
        self.waiting.discard(press_id)
        self.answers[press_id] = (text, bool(fields.get("show_alert")))
        return True

    def _check_chat(self, fields: dict[str, Any]) -> int:
        chat_id = fields["chat_id"]
        if not isinstance(chat_id, int) or chat_id not in self.chats:
            raise Refusal(400, "Bad Request: chat not found")
        if chat_id in self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        return chat_id

    def _person(self, number: int) -> dict[str, Any]:
        return {"id": number, "is_bot": False, "first_name": "Anna", "username": "anna_t"}

    def _add(self, name: str, content: dict[str, Any]) -> None:
        self.updates.append({"update_id": self._take_id(), name: content})
        self.changed.notify_all()

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id


def check_body(body: dict[str, Any]) -> None:
    """Raise `Refusal` for the body of a message that Telegram would refuse."""
    if not set(body) <= _MESSAGE:
        raise Refusal(400, "Bad Request: unknown field")
    check_text(body)
    check_markup(body.get("reply_markup", {}))


def check_text(fields: dict[str, Any]) -> str:
    """Return the text of a message without its markup; raises `Refusal`."""
    if fields.get("parse_mode", "HTML") != "HTML":
        raise Refusal(400, "Bad Request: unsupported parse_mode")
    text = read_html(fields["text"]) if "parse_mode" in fields else fields["text"]
    if not text.strip():
        raise Refusal(400, "Bad Request: message text is empty")
    if len(text.encode("utf-16-le")) // 2 > 4096:
        raise Refusal(400, "Bad Request: message is too long")
    return text


def read_html(html: str) -> str:
    """Return the text of Telegram's HTML; raises `Refusal` for tags that are unknown, open or nested wrongly."""
    text, opened, entities = "", list[str](), 0
    for piece in re.split(r"(</?\w+>|&\w+;)", html):
        if piece in _ENTITIES:
            text += _ENTITIES[piece]
        elif piece.startswith("</"):
            if not opened or opened.pop() != piece[2:-1]:
                raise Refusal(400, f"Bad Request: can't parse entities: unexpected end tag at {len(text)}")
        elif piece.startswith("<") and piece.endswith(">"):
            opened.append(piece[1:-1])
            entities += 1
            if opened[-1] not in _TAGS or set(opened[:-1]) & _LITERAL:
                raise Refusal(400, f"Bad Request: can't parse entities: unsupported start tag at {len(text)}")
        elif re.search("[<>&]", piece):
            raise Refusal(400, f"Bad Request: can't parse entities at {len(text)}")
        else:
            text += piece
    if opened or entities > 100:
        raise Refusal(400, "Bad Request: can't parse entities: too many, or without an end tag")
    return text


def check_markup(markup: dict[str, Any]) -> dict[str, Any]:
    """Return the reply markup; raises `Refusal` for a button that Telegram would refuse."""
    if not set(markup) <= {"inline_keyboard"} and not set(markup) <= {"force_reply", "input_field_placeholder"}:
        raise Refusal(400, "Bad Request: object expected as reply markup")
    if not 0 <= len(markup.get("input_field_placeholder", "")) <= 64:
        raise Refusal(400, "Bad Request: input field placeholder is too long")
    for button in (one for row in markup.get("inline_keyboard", []) for one in row):
        if set(button) == {"text", "callback_data"}:
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        elif set(button) != {"text", "url"} or "." not in (urlsplit(button["url"]).hostname or ""):
            raise Refusal(400, "Bad Request: BUTTON_URL_INVALID")
        if not button["text"]:
            raise Refusal(400, "Bad Request: text buttons are unallowed in the inline keyboard")
    return markup


@contextmanager
def serving_telegram(*chats: int, telegram: Telegram | None = None) -> Iterator[Telegram]:
    """Serve the bot API with these private chats, or one that is given."""
    telegram = Telegram(chats=set(chats)) if telegram is None else telegram
    app = Starlette(routes=[Route("/bot{token}/{method}", telegram.serve, methods=["POST"])])
    with serving(app) as url:
        telegram.url = url
        try:
            yield telegram
        finally:
            with telegram.changed:
                telegram.closed = True
                telegram.changed.notify_all()
