"""The Bot Framework and a Workflows webhook, as a small program: strict about tokens, cards and sizes."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fakes.serving import serving
from tests.service.channels.conformance import Shown

APP = "11111111-2222-3333-4444-555555555555"
PASSWORD = "fake~password~of~the~bot"
TENANT_ID = "99999999-8888-7777-6666-555555555555"
ANNA, BEN = "aaaaaaaa-0000-0000-0000-000000000001", "aaaaaaaa-0000-0000-0000-000000000002"
ISSUER = "https://api.botframework.com"
HOOK = "/workflows/run?sig=fake-signature-of-the-webhook"
ACCESS = "access-token-of-the-bot"
MESSAGE_BYTES = 28 * 1024

_ELEMENTS: dict[str, set[str]] = {
    "AdaptiveCard": {"type", "$schema", "version", "body", "actions", "refresh"},
    "RichTextBlock": {"type", "inlines", "spacing", "separator"},
    "TextRun": {"type", "text", "weight", "size", "color", "italic", "fontType", "selectAction"},
    "Input.Text": {"type", "id", "isMultiline", "maxLength", "label"},
    "Input.ChoiceSet": {"type", "id", "style", "label", "choices"},
    "Action.Execute": {"type", "title", "verb", "data", "style"},
    "Action.OpenUrl": {"type", "title", "url"},
    "Action.ShowCard": {"type", "title", "card"},
}


class BadCard(Exception):
    """A card that Teams would not show."""


@dataclass
class Posted:
    """A message in a conversation."""

    conversation: str
    id: str
    body: dict[str, Any]

    @property
    def card(self) -> dict[str, Any]:
        """The Adaptive Card; empty in a message of text."""
        attachments = self.body.get("attachments", [])
        return dict(attachments[0]["content"]) if attachments else {}

    @property
    def text(self) -> str:
        return read_text(self.card) if self.card else str(self.body["text"])


@dataclass
class Teams:
    """The tenant's people and conversations, with keys that sign messages to the bot."""

    url: str = ""
    people: set[str] = field(default_factory=set)
    messages: list[Posted] = field(default_factory=list)
    hooks: list[dict[str, Any]] = field(default_factory=list)
    refusal: tuple[int, int] = (0, 0)
    tokens: int = 0
    valid: set[str] = field(default_factory=set)
    key_reads: int = 0
    endorsements: list[str] = field(default_factory=lambda: ["msteams"])
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    kid: str = "key-1"
    lock: threading.Lock = field(default_factory=threading.Lock)

    def cards(self, address: str) -> list[Shown]:
        found = [one for one in self.messages if one.conversation == f"a:{address}"]
        return [Shown(one.text, bool(list_verbs(one.card))) for one in found]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        self.refusal = (status, retry_after_s)

    def remove(self, address: str) -> None:
        self.people.discard(address)

    def sign(self, key: rsa.RSAPrivateKey | None = None, **claims: Any) -> str:
        """Return a token as the connector sends it; `claims` replace its own, and None removes one.

        Times are seconds from now.
        """
        basic: dict[str, Any] = {"iss": ISSUER, "aud": APP, "serviceurl": self.url, "nbf": -60, "exp": 3600}
        known = {name: value for name, value in {**basic, **claims}.items() if value is not None}
        moments: dict[str, Any] = {name: int(time.time()) + known[name] for name in ("nbf", "exp") if name in known}
        return jwt.encode({**known, **moments}, key or self.key, "RS256", {"kid": self.kid})

    def invoke(self, person: str, action: dict[str, Any], **inputs: str) -> dict[str, Any]:
        """Return the message for a pressed control, with the texts of the fields beside it."""
        pressed = {**action, "data": {**action["data"], **inputs}}
        return self.activity(person, type="invoke", name="adaptiveCard/action", value={"action": pressed})

    def activity(self, person: str, **fields: Any) -> dict[str, Any]:
        """Return a message to the bot in the person's own conversation."""
        basic = {
            "id": f"f:{time.monotonic_ns()}",
            "channelId": "msteams",
            "serviceUrl": self.url,
            "from": {"id": f"29:{person}", "name": "Anna A", "aadObjectId": person},
            "recipient": {"id": f"28:{APP}"},
            "conversation": {"id": f"a:{person}", "conversationType": "personal", "tenantId": TENANT_ID},
            "channelData": {"tenant": {"id": TENANT_ID}},
        }
        return {**basic, **fields}

    async def metadata(self, request: Request) -> Response:
        return JSONResponse({"issuer": ISSUER, "jwks_uri": f"{self.url}/keys"})

    async def keys(self, request: Request) -> Response:
        self.key_reads += 1
        jwk = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return JSONResponse({"keys": [{**jwk, "kid": self.kid, "use": "sig", "endorsements": self.endorsements}]})

    async def token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        expected = {"grant_type": "client_credentials", "client_id": APP, "client_secret": PASSWORD}
        if form != {**expected, "scope": f"{ISSUER}/.default"} or request.path_params["tenant"] != TENANT_ID:
            return JSONResponse({"error": "invalid_client"}, 401)
        self.tokens += 1
        token = f"{ACCESS}-{self.tokens}"
        self.valid.add(f"Bearer {token}")
        return JSONResponse({"token_type": "Bearer", "expires_in": 3600, "access_token": token})

    async def connect(self, request: Request) -> Response:
        """Create a conversation, or a message, or replace one."""
        status, wait_s = self.refusal
        if status:
            return JSONResponse({"error": {"code": "x"}}, status, {"Retry-After": str(wait_s)} if wait_s else None)
        if request.headers.get("authorization") not in self.valid:
            return JSONResponse({"error": {"code": "Unauthorized"}}, 401)
        raw = await request.body()
        body, conversation = json.loads(raw), request.path_params.get("conversation")
        if conversation is None:
            return self._open(body)
        if conversation.removeprefix("a:") not in self.people and not conversation.startswith("19:"):
            return JSONResponse({"error": {"code": "ConversationNotFound"}}, 404)
        try:
            check_activity(body)
        except BadCard as error:
            return JSONResponse({"error": {"code": "BadArgument", "message": str(error)}}, 400)
        with self.lock:
            return self._save(conversation, request.path_params.get("message"), body)

    def _open(self, body: dict[str, Any]) -> Response:
        wanted = {"bot", "members", "tenantId", "channelData", "isGroup"}
        if set(body) != wanted or body["bot"] != {"id": f"28:{APP}"} or body["tenantId"] != TENANT_ID:
            return JSONResponse({"error": {"code": "BadSyntax"}}, 400)
        person = body["members"][0]["id"]
        if person not in self.people:
            return JSONResponse({"error": {"code": "BotNotInConversationRoster"}}, 403)
        return JSONResponse({"id": f"a:{person}"}, 201)

    def _save(self, conversation: str, message: str | None, body: dict[str, Any]) -> Response:
        if message is None:
            self.messages.append(Posted(conversation, str(1_700_000_000_000 + len(self.messages)), body))
            return JSONResponse({"id": self.messages[-1].id}, 201)
        for one in self.messages:
            if (one.conversation, one.id) == (conversation, message):
                one.body = body
                return JSONResponse({"id": message})
        return JSONResponse({"error": {"code": "ActivityNotFound"}}, 404)

    async def hook(self, request: Request) -> Response:
        """Take a card as a flow does that posts it into a channel."""
        status, wait_s = self.refusal
        if status:
            return JSONResponse({}, status, {"Retry-After": str(wait_s)} if wait_s else None)
        if f"{request.url.path}?{request.url.query}" != HOOK or "hook" not in self.people:
            return JSONResponse({"error": {"code": "WorkflowTriggerIsNotEnabled"}}, 404)
        body = await request.json()
        try:
            check_activity(body)
            if list_verbs(body["attachments"][0]["content"]):
                raise BadCard("a flow takes no Action.Execute")
        except BadCard as error:
            return JSONResponse({"error": {"message": str(error)}}, 400)
        self.hooks.append(body["attachments"][0]["content"])
        return JSONResponse({}, 202)


def check_activity(body: dict[str, Any]) -> None:
    """Raise `BadCard` for a message that Teams would refuse."""
    if not set(body) <= {"type", "id", "text", "textFormat", "summary", "attachments"} or body["type"] != "message":
        raise BadCard("unknown field")
    for attachment in body.get("attachments", []):
        if attachment["contentType"] != "application/vnd.microsoft.card.adaptive":
            raise BadCard("unknown attachment")
        check_card(attachment["content"])
    if len(json.dumps(body, ensure_ascii=False).encode("utf-16-le")) > MESSAGE_BYTES + 2_000:
        raise BadCard("RequestEntityTooLarge")


def check_card(card: dict[str, Any], depth: int = 0) -> None:
    """Raise `BadCard` for a card that Teams would not show as it is."""
    if depth == 0 and card.get("version") != "1.4":
        raise BadCard("unknown version")
    if len(json.dumps(card, ensure_ascii=False).encode("utf-16-le")) > MESSAGE_BYTES:
        raise BadCard("the card is too large")
    for part in [card, *card.get("body", []), *card.get("actions", [])]:
        if part.get("type") not in _ELEMENTS or not set(part) <= _ELEMENTS[part["type"]]:
            raise BadCard(f"{part.get('type')} with {sorted(part)}")
        for run in part.get("inlines", []):
            if not set(run) <= _ELEMENTS["TextRun"] or not run["text"] or re.search("  |\n", run["text"]):
                raise BadCard("a text run that is not shown as it is")
            if run.get("selectAction", {"type": "Action.OpenUrl"})["type"] != "Action.OpenUrl":
                raise BadCard("a text run that does more than open an address")
        if "card" in part:
            check_card(part["card"], depth + 1)
    if len(card.get("actions", [])) > 6:
        raise BadCard("too many actions")


def list_actions(card: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the controls that lead to the bot, by their verb."""
    found: dict[str, dict[str, Any]] = {}
    for action in card.get("actions", []):
        if action["type"] == "Action.Execute":
            found[action["verb"]] = action
        elif action["type"] == "Action.ShowCard":
            found |= list_actions(action["card"])
    return found


def list_verbs(card: dict[str, Any]) -> set[str]:
    """Return what the card's controls can decide."""
    return set(list_actions(card)) - {"refresh"}


def read_text(card: dict[str, Any]) -> str:
    """Return the card as a reader sees it."""
    lines = ["".join(run["text"] for run in one["inlines"]) for one in card["body"] if "inlines" in one]
    return "\n".join(lines).replace("\u00a0", " ")


@contextmanager
def serving_teams(*people: str) -> Iterator[Teams]:
    """Serve the Bot Framework for a tenant with these people."""
    teams = Teams(people={*people, "hook"})
    connector = "/v3/conversations"
    routes = [
        Route("/metadata", teams.metadata),
        Route("/keys", teams.keys),
        Route("/workflows/run", teams.hook, methods=["POST"]),
        Route("/{tenant}/oauth2/v2.0/token", teams.token, methods=["POST"]),
        Route(connector, teams.connect, methods=["POST"]),
        Route(f"{connector}/{{conversation}}/activities", teams.connect, methods=["POST"]),
        Route(f"{connector}/{{conversation}}/activities/{{message}}", teams.connect, methods=["PUT"]),
    ]
    with serving(Starlette(routes=routes)) as url:
        teams.url = url
        yield teams
