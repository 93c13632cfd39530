"""The API's operations, written once for `Client` and `AsyncClient`."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, get_args, overload

from pydantic import JsonValue

from sayso.client import evidence, requests, retries, rulebook
from sayso.client.requests import Request, item_path, new_key, segment
from sayso.client.retries import Flow, RetryPolicy
from sayso.core.canonical_json import JsonObject
from sayso.core.records.terms import REPORT_WITHIN_S
from sayso.errors import InvalidInput
from sayso.wire.administration import KeyList, KeyView, NewKeyView, SessionView
from sayso.wire.evidence import OverrideLines
from sayso.wire.items import AttachmentContent, AttachmentPage, CommentPage, ItemView
from sayso.wire.models import ViewT
from sayso.wire.people import ForecastPage
from sayso.wire.rulebook import MandateView, WouldView
from sayso.wire.suspensions import (
    DecidedItem,
    ExternalEventsResponse,
    InquiryPage,
    NotePage,
    RedeemedItem,
    RunPage,
    RunView,
    SuspensionPage,
    SuspensionView,
)

_SUSPENSIONS, _RUNS, _KEYS = "/api/v1/suspensions", "/api/v1/runs", "/api/v1/keys"

Action = Literal["approve", "deny", "value"]
WaitingStatus = Literal["pending", "decided", "undoable"]
RunState = Literal["running", "suspended", "completed", "degraded", "failed", "cancelled"]

P = ParamSpec("P")
T = TypeVar("T")


def check_word(name: str, word: object, words: Any) -> None:
    """Raise `InvalidInput` for a word that is none of those of a `Literal`."""
    if word not in get_args(words):
        listed = ", ".join(map(repr, get_args(words)))
        raise InvalidInput(f"{name}={word!r} is unknown. Give one of {listed}.")


class _BlockingRunner(Protocol):
    def run(self, flow: Flow[T]) -> T: ...


class _AsyncRunner(Protocol):
    def run(self, flow: Flow[T]) -> Coroutine[Any, Any, T]: ...


class Operation(Generic[P, T]):
    """The type of an operation: `Client` returns its result, `AsyncClient` a coroutine."""

    @overload
    def __get__(self, client: _BlockingRunner, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: _AsyncRunner, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any: ...


def operation(method: Callable[Concatenate[Any, P], Flow[T]]) -> Operation[P, T]:
    """Decorate a method that returns a flow: called, it runs the flow on its client."""

    def start(client: Any, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        return (yield from method(client, *args, **kwargs))  # a wrong argument raises where the coroutine is awaited

    @functools.wraps(method)
    def call(client: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        return client.run(start(client, *args, **kwargs))

    signature = inspect.signature(method)
    result = get_args(signature.return_annotation)[-1]
    call.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]
    return cast(Operation[P, T], call)


class Operations:
    """The operations that both clients offer."""

    retry_policy: RetryPolicy
    key: str | None

    def _send(self, request: Request[ViewT]) -> Flow[ViewT]:
        return retries.send(self.retry_policy, request)

    @operation
    def suspend(
        self, body: JsonObject, key: str | None = None, *, on_behalf_of: str | None = None
    ) -> Flow[SuspensionView]:
        """Submit calls, as in `POST /api/v1/suspensions`. The same key returns the same suspension.

        `on_behalf_of` is a signed token that names the person for whom the agent acts.
        """
        key = key or new_key()
        return self._send(Request("POST", _SUSPENSIONS, SuspensionView, body=body, key=key, on_behalf_of=on_behalf_of))

    @operation
    def would(self, body: JsonObject, *, on_behalf_of: str | None = None) -> Flow[WouldView]:
        """Say whether a call would be allowed, asked about or denied now, as in `POST /api/v1/policy/would`."""
        return self._send(Request("POST", "/api/v1/policy/would", WouldView, body=body, on_behalf_of=on_behalf_of))

    @operation
    def overrides(self, day: str = "") -> Flow[OverrideLines]:
        """Return what people edited and denied on a day in UTC, by default today; an agent's are those of its runs."""
        return self._send(evidence.list_overrides(day))

    @operation
    def find(self, suspension_id: str) -> Flow[SuspensionView]:
        """Return a suspension."""
        return self._send(requests.find_suspension(suspension_id))

    @operation
    def forecast(self, suspension_id: str) -> Flow[ForecastPage]:
        """Say when each open item will probably be decided, from how long such items waited before."""
        return self._send(requests.forecast(suspension_id))

    @operation
    def wait(self, suspension_id: str, wait_s: float | None = None) -> Flow[SuspensionView]:
        """Return the suspension once it is decided, or as it is after `wait_s`. Restarts of the desk do no harm."""
        return retries.await_decision(self.retry_policy, suspension_id, wait_s)

    @operation
    def waiting(self, status: WaitingStatus = "pending", skip: int = 0, limit: int = 50) -> Flow[SuspensionPage]:
        """Return the suspensions that wait for reviewers, or those that are `decided`."""
        check_word("status", status, WaitingStatus)
        query = {"status": status, "skip": str(skip), "limit": str(limit)}
        return self._send(Request("GET", _SUSPENSIONS, SuspensionPage, query=query))

    @operation
    def decide(
        self, /, suspension_id: str, item: ItemView, action: Action, *, key: str | None = None, **given: JsonValue
    ) -> Flow[DecidedItem]:
        """Decide an item: `approve`, `deny` or `value`, with `args`, `value`, `message` and `number`.

        The decision carries the digest of `item`, so it counts only for the content you read. Raises `InvalidInput` for
        another action.
        """
        check_word("action", action, Action)
        body: JsonObject = {"action": action, "digest": item.digest, **given}
        path = f"{item_path(suspension_id, item.item_id)}/decision"
        return self._send(Request("POST", path, DecidedItem, body=body, key=key or new_key()))

    @operation
    def retract(self, suspension_id: str, item_id: str) -> Flow[SuspensionView]:
        """Take back your decision on an item while its quorum is short."""
        return self._send(Request("DELETE", f"{item_path(suspension_id, item_id)}/decision", SuspensionView))

    @operation
    def confirm(
        self, suspension_id: str, item: ItemView, *, message: str | None = None, decline: bool = False
    ) -> Flow[SuspensionView]:
        """Confirm the call that an agent makes for you, or `decline` it with a `message`; only its acting user can.

        The confirmation carries the digest of the call that you read. Raises `InvalidInput` without one to confirm.
        """
        if item.to_confirm is None:
            raise InvalidInput("This item has no call that waits for a confirmation. Read it again.")
        body: JsonObject = {"action": "decline" if decline else "confirm", "digest": item.to_confirm.digest}
        body |= {"message": message} if message is not None else {}
        path = f"{item_path(suspension_id, item.item_id)}/confirmation"
        return self._send(Request("POST", path, SuspensionView, body=body, key=new_key()))

    @operation
    def inquiries(self, suspension_id: str, wait_s: int = 0) -> Flow[InquiryPage]:
        """Return reviewers' questions that wait for an answer of the run's owner; `wait_s`, up to 60, for the first."""
        return self._send(requests.list_inquiries(suspension_id, wait_s))

    @operation
    def answer_inquiry(self, suspension_id: str, item_id: str, inquiry_id: str, text: str) -> Flow[SuspensionView]:
        """Answer a reviewer's question as the owner of the run."""
        path = f"{item_path(suspension_id, item_id)}/inquiries/{segment(inquiry_id)}/answer"
        return self._send(Request("POST", path, SuspensionView, body={"text": text}, key=new_key()))

    @operation
    def ask_requester(
        self, suspension_id: str, item_id: str, text: str, *, key: str | None = None
    ) -> Flow[SuspensionView]:
        """Put a reviewer's question to the requester."""
        return self._send(requests.write(f"{item_path(suspension_id, item_id)}/inquiries", SuspensionView, text, key))

    @operation
    def forward(self, suspension_id: str, item: ItemView, to: str, note: str = "") -> Flow[SuspensionView]:
        """Ask another reviewer, or a group as `group:NAME`, to decide an item as you read it; you still may, too."""
        return self._send(requests.forward(suspension_id, item, to, note))

    @operation
    def claim(self, suspension_id: str, item_id: str) -> Flow[SuspensionView]:
        """Tell the other reviewers for 15 minutes that you handle an item."""
        return self._send(Request("POST", f"{item_path(suspension_id, item_id)}/claim", SuspensionView))

    @operation
    def release_claim(self, suspension_id: str, item_id: str) -> Flow[SuspensionView]:
        """Release your claim of an item."""
        return self._send(Request("DELETE", f"{item_path(suspension_id, item_id)}/claim", SuspensionView))

    @operation
    def comment(self, suspension_id: str, item_id: str, text: str, *, key: str | None = None) -> Flow[CommentPage]:
        """Comment on an item, for the other reviewers; returns all comments on it. The agent cannot read them."""
        return self._send(requests.write(f"{item_path(suspension_id, item_id)}/comments", CommentPage, text, key))

    @operation
    def preview(self, suspension_id: str, item_id: str, args: JsonObject | None = None) -> Flow[SuspensionView]:
        """Ask the workers what a call would do, or what it would do with edited arguments."""
        return self._send(requests.preview(suspension_id, item_id, args))

    @operation
    def write_note(self, run_id: str, text: str, *, key: str | None = None) -> Flow[NotePage]:
        """Write to the agent of a run without deciding; returns all notes of the run."""
        return self._send(requests.write(f"{_RUNS}/{segment(run_id)}/notes", NotePage, text, key))

    @operation
    def notes(self, run_id: str) -> Flow[NotePage]:
        """Return what people wrote to the agent of a run."""
        return self._send(Request("GET", f"{_RUNS}/{segment(run_id)}/notes", NotePage))

    @operation
    def comments(self, run_id: str) -> Flow[CommentPage]:
        """Return reviewers' comments on all items of a run."""
        return self._send(Request("GET", f"{_RUNS}/{segment(run_id)}/comments", CommentPage))

    @operation
    def attach(self, suspension_id: str, item_id: str, name: str, content: bytes) -> Flow[AttachmentPage]:
        """Attach an image, a PDF or a text to an open item; returns its files. The same file is attached once."""
        return self._send(requests.attach(suspension_id, item_id, name, content))

    @operation
    def attachment(self, suspension_id: str, item_id: str, attachment_id: str) -> Flow[AttachmentContent]:
        """Return an attached file with its content."""
        path = f"{item_path(suspension_id, item_id)}/attachments/{segment(attachment_id)}"
        return self._send(Request("GET", path, AttachmentContent))

    @operation
    def redeem(
        self, suspension_id: str, item_id: str, key: str, report_within_s: int = REPORT_WITHIN_S
    ) -> Flow[RedeemedItem]:
        """Redeem the permit of a call right before it starts; the result has the arguments to run.

        `key` names this attempt: the same key gets the same result, any other raises `AlreadyRedeemed`.
        """
        return self._send(requests.redeem(suspension_id, item_id, key, report_within_s))

    @operation
    def report_outcome(
        self,
        suspension_id: str,
        item_id: str,
        key: str,
        *,
        success: bool = True,
        output: JsonValue = None,
        error: str | None = None,
    ) -> Flow[SuspensionView]:
        """Report how a call ended, with the key that redeemed its permit."""
        return self._send(requests.report_outcome(suspension_id, item_id, key, success, output, error))

    @operation
    def propose_mandate(
        self, plan: JsonObject, key: str | None = None, *, on_behalf_of: str | None = None
    ) -> Flow[MandateView]:
        """Propose a plan, as in `POST /api/v1/mandates`. The same key returns the same mandate.

        `on_behalf_of` is as in `suspend`.
        """
        return self._send(rulebook.propose_mandate(plan, key or new_key(), on_behalf_of))

    @operation
    def find_mandate(self, mandate_id: str) -> Flow[MandateView]:
        """Return a mandate, or its plan."""
        return self._send(rulebook.find_mandate(mandate_id))

    @operation
    def await_mandate(self, mandate_id: str, wait_s: float | None = None) -> Flow[MandateView]:
        """Return the mandate once people have decided its plan, or as it is after `wait_s`."""
        build = functools.partial(rulebook.find_mandate, mandate_id)
        return retries.poll(self.retry_policy, build, lambda mandate: mandate.state != "proposed", wait_s)

    @operation
    def end_mandate(self, mandate_id: str) -> Flow[MandateView]:
        """End a mandate at once, or withdraw its plan."""
        return self._send(rulebook.revoke_mandate(mandate_id))

    @operation
    def start_run(
        self,
        agent: str,
        text: str,
        *,
        title: str | None = None,
        context: JsonObject | None = None,
        thread_id: str | None = None,
        key: str | None = None,
        on_behalf_of: str | None = None,
    ) -> Flow[RunView]:
        """Start a run of a registered agent, in the conversation `thread_id`; `on_behalf_of` is as in `suspend`."""
        body: JsonObject = {"agent": agent, "input": text, "title": title, "context": context or {}}
        body |= {"thread_id": thread_id} if thread_id is not None else {}
        return self._send(Request("POST", _RUNS, RunView, body=body, key=key or new_key(), on_behalf_of=on_behalf_of))

    @operation
    def find_run(self, run_id: str) -> Flow[RunView]:
        """Return a run."""
        return self._send(requests.find_run(run_id))

    @operation
    def await_run(self, run_id: str, wait_s: float | None = None) -> Flow[RunView]:
        """Return the run once it has ended, or its current state after `wait_s`."""
        build = functools.partial(requests.find_run, run_id)
        return retries.poll(self.retry_policy, build, lambda run: run.ended, wait_s)

    @operation
    def runs(self, status: RunState | None = None, skip: int = 0, limit: int = 50) -> Flow[RunPage]:
        """Return runs, newest first."""
        if status is not None:
            check_word("status", status, RunState)
        query = {"skip": str(skip), "limit": str(limit), **({"status": status} if status else {})}
        return self._send(Request("GET", _RUNS, RunPage, query=query))

    @operation
    def cancel(self, run_id: str, reason: str | None = None, *, key: str | None = None) -> Flow[RunView]:
        """Cancel a run."""
        path = f"{_RUNS}/{segment(run_id)}/cancel"
        return self._send(Request("POST", path, RunView, body={"reason": reason}, key=key or new_key()))

    @operation
    def report_events(
        self,
        run_id: str,
        source_format: str,
        events: Sequence[JsonObject],
        *,
        source: str = "agent",
        first_seq: int = 1,
        at: Sequence[datetime | None] = (),
    ) -> Flow[ExternalEventsResponse]:
        """Add external events to a run's timeline. Events with the same numbers are stored once.

        `at` has the time of each event, for formats whose events carry none.
        """
        numbered = requests.number_events(events, first_seq, at)
        body: JsonObject = {"source_format": source_format, "source": source, "events": numbered}
        return self._send(Request("POST", f"{_RUNS}/{segment(run_id)}/events", ExternalEventsResponse, body=body))

    @operation
    def sign_in(self, name: str, password: str, code: str = "") -> Flow[SessionView]:
        """Open a reviewer's session and use it from now on. `code` is that of their app; raises `CodeRequired`."""
        body: JsonObject = {"name": name, "password": password, **({"code": code} if code else {})}
        opened = yield from self._send(Request("POST", "/api/v1/sessions", SessionView, body=body))
        self.key = opened.token
        return opened

    @operation
    def keys(self) -> Flow[KeyList]:
        """Return all keys. Requires an admin."""
        return self._send(Request("GET", _KEYS, KeyList))

    @operation
    def create_key(  # noqa: PLR0913  one parameter for each field
        self,
        name: str,
        kind: str = "agent",
        *,
        context: JsonObject | None = None,
        owner: str | None = None,
        scopes: Sequence[str] = (),
        agents: Sequence[str] = (),
        networks: Sequence[str] = (),
        expires_at: str | None = None,
        key: str | None = None,
    ) -> Flow[NewKeyView]:
        """Create a key. Its secret is returned only here; rules read `context` as facts about its holder.

        `owner` is the person who owns an agent's key. `scopes` (`ask`, `run`, `read`, `webhooks`) and `agents` narrow
        an agent's key, and `networks` (CIDR) and `expires_at` (RFC 3339) any key.
        """
        body: JsonObject = {"name": name, "kind": kind, **({"context": context} if context else {})}
        narrowing: JsonObject = {"owner": owner, "expires_at": expires_at}
        narrowing |= {"scopes": [*scopes], "agents": [*agents], "networks": [*networks]}
        body |= {name: value for name, value in narrowing.items() if value}
        return self._send(Request("POST", _KEYS, NewKeyView, body=body, key=key or new_key()))

    @operation
    def rotate_key(self, key_id: str, overlap_s: int = 3600, *, key: str | None = None) -> Flow[NewKeyView]:
        """Create a successor of a key. The old key stays valid for `overlap_s`."""
        path = f"{_KEYS}/{segment(key_id)}/rotate"
        return self._send(Request("POST", path, NewKeyView, body={"overlap_s": overlap_s}, key=key or new_key()))

    @operation
    def revoke_key(self, key_id: str) -> Flow[KeyView]:
        """Revoke a key. It fails everywhere within a second."""
        return self._send(Request("POST", f"{_KEYS}/{segment(key_id)}/revoke", KeyView))
