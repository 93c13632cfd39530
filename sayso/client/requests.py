"""Build every request to the desk's API once, for whichever client sends it; no network in here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.client.responses import (
    DecidedItem,
    EventPage,
    ExternalEventsSeen,
    FindingPage,
    FreezePage,
    FreezeSeen,
    Key,
    KeyPage,
    Nothing,
    RedeemedItem,
    Reply,
    RulesChecked,
    Run,
    RunPage,
    SessionSeen,
    Suspension,
    SuspensionPage,
)
from sayso.clock import new_secret
from sayso.errors import InvalidInput
from sayso.records.tool_calls import ToolDefinition

LONGEST_POLL_S = 60
"""How long the desk holds one long poll at most."""

_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,200}")
_CREDENTIAL = re.compile(r"[!-~]+")

R = TypeVar("R", bound=Reply)


@dataclass(frozen=True)
class Exchange(Generic[R]):
    """One request and what its answer is read as. With a key it can be sent again without doing anything twice."""

    method: str
    path: str
    reply: type[R]
    query: Mapping[str, str] = field(default_factory=dict)
    body: JsonObject | None = None
    key: str | None = None
    poll_s: int = 0


def new_key() -> str:
    """Return a key for one request, the same however often that is sent."""
    return new_secret()[:32]


def ask_for_call(
    definition: ToolDefinition,
    args: JsonObject,
    key: str,
    title: str,
    context: JsonObject,
    thread_id: str | None = None,
    step: int | None = None,
) -> Exchange[Suspension]:
    """Have one call judged that whoever asks runs."""
    described: JsonObject = {
        "description": definition.description,
        "parameters": definition.parameters,
        "idempotent": definition.idempotent,
    }
    call: JsonObject = {"tool": definition.name, "args": args, "definition": described}
    body: JsonObject = {"mode": "poll", "calls": [call], "title": title, "context": context}
    body |= {name: one for name, one in (("thread_id", thread_id), ("step", step)) if one is not None}
    return Exchange("POST", "/api/v1/suspensions", Suspension, body=body, key=key)


def ask_for_calls(body: JsonObject, key: str | None) -> Exchange[Suspension]:
    """Have calls judged that workers run, or whoever asks."""
    return Exchange("POST", "/api/v1/suspensions", Suspension, body=body, key=key or new_key())


def find_suspension(suspension_id: str, wait_s: int = 0) -> Exchange[Suspension]:
    """Read a suspension; with a wait, as soon as it no longer waits for people."""
    path = f"/api/v1/suspensions/{_part(suspension_id)}"
    return Exchange("GET", path, Suspension, query=_wait(wait_s), poll_s=wait_s)


def list_suspensions(status: str, skip: int, limit: int) -> Exchange[SuspensionPage]:
    """Read what waits, or what was decided."""
    query = {"status": status, "skip": str(skip), "limit": str(limit)}
    return Exchange("GET", "/api/v1/suspensions", SuspensionPage, query=query)


def decide(suspension_id: str, item_id: str, word: JsonObject, key: str | None) -> Exchange[DecidedItem]:
    """Give a word on an item: its action, the digest of what was seen, and what goes with it."""
    path = f"{_item(suspension_id, item_id)}/decision"
    return Exchange("POST", path, DecidedItem, body=word, key=key or new_key())


def redeem(suspension_id: str, item_id: str, holder: str, report_within_s: int) -> Exchange[RedeemedItem]:
    """Spend the leave to run a call, in the name of this holder."""
    body: JsonObject = {"report_within_s": report_within_s}
    return Exchange("POST", f"{_item(suspension_id, item_id)}/redeem", RedeemedItem, body=body, key=holder)


def report_outcome(
    suspension_id: str, item_id: str, holder: str, success: bool, output: JsonValue, error: str | None
) -> Exchange[Suspension]:
    """Say what came of a call whose leave this holder spent."""
    body: JsonObject = {"success": success, "output": output, "error": error}
    return Exchange("POST", f"{_item(suspension_id, item_id)}/outcome", Suspension, body=body, key=holder)


def mark_in_doubt(suspension_id: str, item_id: str) -> Exchange[Suspension]:
    """Have people asked whether a call that was begun has run."""
    return Exchange("POST", f"{_item(suspension_id, item_id)}/in-doubt", Suspension)


def start_run(agent: str, text: str, title: str | None, context: JsonObject, key: str | None) -> Exchange[Run]:
    """Start a run of a registered agent."""
    body: JsonObject = {"agent": agent, "input": text, "title": title, "context": context}
    return Exchange("POST", "/api/v1/runs", Run, body=body, key=key or new_key())


def find_run(run_id: str, wait_s: int = 0) -> Exchange[Run]:
    """Read a run; with a wait, as soon as it has ended."""
    return Exchange("GET", f"/api/v1/runs/{_part(run_id)}", Run, query=_wait(wait_s), poll_s=wait_s)


def list_runs(status: str | None, skip: int, limit: int) -> Exchange[RunPage]:
    """Read the newest runs."""
    query = {"skip": str(skip), "limit": str(limit), **({"status": status} if status else {})}
    return Exchange("GET", "/api/v1/runs", RunPage, query=query)


def cancel_run(run_id: str, reason: str | None, key: str | None) -> Exchange[Run]:
    """End a run for good."""
    return Exchange("POST", f"/api/v1/runs/{_part(run_id)}/cancel", Run, body={"reason": reason}, key=key or new_key())


def list_events(run_id: str, after: int, limit: int) -> Exchange[EventPage]:
    """Read a run's events behind a number."""
    query = {"after": str(after), "limit": str(limit)}
    return Exchange("GET", f"/api/v1/runs/{_part(run_id)}/events", EventPage, query=query)


def report_events(
    run_id: str,
    source_format: str,
    events: Sequence[JsonObject],
    source: str,
    first_seq: int,
    at: Sequence[datetime | None] = (),
) -> Exchange[ExternalEventsSeen]:
    """Tell what happened to a run, and when; the numbers make it safe to send again."""
    if at and len(at) != len(events):
        raise InvalidInput(f"There are {len(events)} events and {len(at)} moments in at; give one for each, or none.")
    moments = [None if one is None else _moment(one) for one in at] or [None] * len(events)
    numbered: list[JsonValue] = [
        {"seq": seq, "event": event, **({"at": moment} if moment else {})}
        for seq, (event, moment) in enumerate(zip(events, moments, strict=True), start=first_seq)
    ]
    body: JsonObject = {"source_format": source_format, "source": source, "events": numbered}
    return Exchange("POST", f"/api/v1/runs/{_part(run_id)}/events", ExternalEventsSeen, body=body)


def _moment(at: datetime) -> str:
    if at.tzinfo is None:
        raise InvalidInput(f"The moment {at.isoformat()} in at has no zone; give it one, such as UTC.")
    return at.isoformat()


def sign_in(name: str, password: str) -> Exchange[SessionSeen]:
    """Open a person's session."""
    return Exchange("POST", "/api/v1/sessions", SessionSeen, body={"name": name, "password": password})


def list_keys() -> Exchange[KeyPage]:
    """Read all keys."""
    return Exchange("GET", "/api/v1/keys", KeyPage)


def create_key(name: str, kind: str, context: JsonObject | None, key: str | None) -> Exchange[Key]:
    """Make a key."""
    body: JsonObject = {"name": name, "kind": kind, **({"context": context} if context else {})}
    return Exchange("POST", "/api/v1/keys", Key, body=body, key=key or new_key())


def rotate_key(key_id: str, overlap_s: int, key: str | None) -> Exchange[Key]:
    """Make the next key; the one before holds for a while beside it."""
    path = f"/api/v1/keys/{_part(key_id)}/rotate"
    return Exchange("POST", path, Key, body={"overlap_s": overlap_s}, key=key or new_key())


def revoke_key(key_id: str) -> Exchange[Key]:
    """End a key."""
    return Exchange("POST", f"/api/v1/keys/{_part(key_id)}/revoke", Key)


def diagnose() -> Exchange[FindingPage]:
    """Have the desk look at its parts."""
    return Exchange("GET", "/api/v1/examination", FindingPage)


def freeze(scope: str, reason: str, *, confirm: bool) -> Exchange[FreezeSeen]:
    """Let nothing new start within a scope; a name that was never seen takes a confirmation."""
    body: JsonObject = {"scope": scope, "reason": reason, "confirm": confirm}
    return Exchange("POST", "/api/v1/freezes", FreezeSeen, body=body)


def list_freezes() -> Exchange[FreezePage]:
    """Read what is frozen."""
    return Exchange("GET", "/api/v1/freezes", FreezePage)


def unfreeze(freeze_id: str) -> Exchange[FreezeSeen]:
    """End a freeze; deadlines move by the time that it took."""
    return Exchange("POST", f"/api/v1/freezes/{_part(freeze_id)}/lift", FreezeSeen)


def check_rules(text: str, file: str) -> Exchange[RulesChecked]:
    """Have rules checked."""
    return Exchange("POST", "/api/v1/policy/check", RulesChecked, body={"text": text, "file": file})


def look(path: str) -> Exchange[Nothing]:
    """Ask whether the desk lives, or is ready."""
    return Exchange("GET", path, Nothing)


def check_credential(credential: str | None) -> str | None:
    """Return a key or a session's token, None for an empty one; raises `InvalidInput` for what no header can carry.

    The error does not repeat it.
    """
    if credential and not _CREDENTIAL.fullmatch(credential):
        raise InvalidInput(
            "The key has a character that no key has, such as a space or the end of a line. Copy it again, "
            "alone, to SAYSO_KEY or wherever it is given."
        )
    return credential or None


def headers_of(exchange: Exchange[Any], credential: str | None) -> dict[str, str]:
    """Return the headers that go with a request; raises `InvalidInput` for a key of its own that they cannot carry."""
    if exchange.key is not None and not _IDEMPOTENCY_KEY.fullmatch(exchange.key):
        raise InvalidInput(f"The key {exchange.key[:80]!r} is not 1 to 200 visible ASCII characters; choose another.")
    headers = {"Accept": "application/json", "User-Agent": "sayso-python"}
    if credential:
        headers["Authorization"] = f"Bearer {credential}"
    if exchange.key is not None:
        headers["Idempotency-Key"] = exchange.key
    return headers


def _item(suspension_id: str, item_id: str) -> str:
    return f"/api/v1/suspensions/{_part(suspension_id)}/items/{_part(item_id)}"


def _part(word: str) -> str:
    return quote(word, safe="") or "-"


def _wait(wait_s: int) -> dict[str, str]:
    return {"wait": f"{wait_s}s"} if wait_s else {}
