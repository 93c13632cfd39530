"""The API's operations, written once for `Client` and `AsyncClient`."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, get_args, overload

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.client import administration, requests, retries
from sayso.client.administration import Key, KeyPage, SessionView
from sayso.client.requests import Request
from sayso.client.responses import (
    DecidedItem,
    ExternalEventsView,
    ItemView,
    RedeemedItem,
    ResponseModelT,
    Run,
    RunPage,
    Suspension,
    SuspensionPage,
)
from sayso.client.retries import Flow, RetryPolicy
from sayso.records.terms import REPORT_WITHIN_S

P = ParamSpec("P")
T = TypeVar("T")


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

    def _send(self, request: Request[ResponseModelT]) -> Flow[ResponseModelT]:
        return retries.send(self.retry_policy, request)

    @operation
    def suspend(self, body: JsonObject, key: str | None = None) -> Flow[Suspension]:
        """Submit calls, as in `POST /api/v1/suspensions`. The same key returns the same suspension."""
        return self._send(requests.suspend(body, key))

    @operation
    def find(self, suspension_id: str) -> Flow[Suspension]:
        """Return a suspension."""
        return self._send(requests.find_suspension(suspension_id))

    @operation
    def wait(self, suspension_id: str, wait_s: float | None = None) -> Flow[Suspension]:
        """Return the suspension once it is decided, or its current state after `wait_s`.

        The wait continues through restarts of the desk.
        """
        return retries.await_decision(self.retry_policy, suspension_id, wait_s)

    @operation
    def waiting(self, status: str = "pending", skip: int = 0, limit: int = 50) -> Flow[SuspensionPage]:
        """Return the suspensions that wait for reviewers, or those that are `decided`."""
        return self._send(requests.list_suspensions(status, skip, limit))

    @operation
    def decide(
        self, /, suspension_id: str, item: ItemView, action: str, *, key: str | None = None, **given: JsonValue
    ) -> Flow[DecidedItem]:
        """Decide an item: `approve`, `deny` or `value`, with `args`, `value` and `message`.

        The decision carries the digest of `item`, so it counts only for the content you read.
        """
        decision = build_decision(item, action, given)
        return self._send(requests.decide(suspension_id, item.item_id, decision, key))

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
    ) -> Flow[Suspension]:
        """Report how a call ended, with the key that redeemed its permit."""
        return self._send(requests.report_outcome(suspension_id, item_id, key, success, output, error))

    @operation
    def start_run(
        self,
        agent: str,
        text: str,
        *,
        title: str | None = None,
        context: JsonObject | None = None,
        key: str | None = None,
    ) -> Flow[Run]:
        """Start a run of a registered agent."""
        return self._send(requests.start_run(agent, text, title, context or {}, key))

    @operation
    def find_run(self, run_id: str) -> Flow[Run]:
        """Return a run."""
        return self._send(requests.find_run(run_id))

    @operation
    def await_run(self, run_id: str, wait_s: float | None = None) -> Flow[Run]:
        """Return the run once it has ended, or its current state after `wait_s`."""
        return retries.await_end(self.retry_policy, run_id, wait_s)

    @operation
    def runs(self, status: str | None = None, skip: int = 0, limit: int = 50) -> Flow[RunPage]:
        """Return runs, newest first."""
        return self._send(requests.list_runs(status, skip, limit))

    @operation
    def cancel(self, run_id: str, reason: str | None = None, *, key: str | None = None) -> Flow[Run]:
        """Cancel a run."""
        return self._send(requests.cancel_run(run_id, reason, key))

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
    ) -> Flow[ExternalEventsView]:
        """Add external events to a run's timeline. Events with the same numbers are stored once.

        `at` has the time of each event, for formats whose events carry none.
        """
        return self._send(requests.report_events(run_id, source_format, events, source, first_seq, at))

    @operation
    def sign_in(self, name: str, password: str) -> Flow[SessionView]:
        """Open a reviewer's session and use it from now on."""
        opened = yield from self._send(administration.sign_in(name, password))
        self.key = opened.token
        return opened

    @operation
    def keys(self) -> Flow[KeyPage]:
        """Return all keys. Requires an admin."""
        return self._send(administration.list_keys())

    @operation
    def create_key(
        self, name: str, kind: str = "agent", *, context: JsonObject | None = None, key: str | None = None
    ) -> Flow[Key]:
        """Create a key. Its secret is returned only here; rules read `context` as facts about its holder."""
        return self._send(administration.create_key(name, kind, context, key))

    @operation
    def rotate_key(self, key_id: str, overlap_s: int = 3600, *, key: str | None = None) -> Flow[Key]:
        """Create a successor of a key. The old key stays valid for `overlap_s`."""
        return self._send(administration.rotate_key(key_id, overlap_s, key))

    @operation
    def revoke_key(self, key_id: str) -> Flow[Key]:
        """Revoke a key. It fails everywhere within a second."""
        return self._send(administration.revoke_key(key_id))


def build_decision(item: ItemView, action: str, given: JsonObject) -> JsonObject:
    """Return the body of a decision, bound to the item's digest."""
    return {"action": action, "digest": item.digest, **given}
