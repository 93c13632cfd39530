"""Run a function, or a block, that `gate` put a person before: ask, wait, run at most once, report.

What an earlier process ran under the same key is not run again: its result is returned.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python

import sayso
from sayso.canonical_json import JsonObject
from sayso.client.permits import OnDoubt, Permission, Ran, Wanted, obtain
from sayso.client.reports import Call, describe_earlier, is_known, report, report_async
from sayso.errors import AlreadyRedeemed, CallFailed, InvalidInput
from sayso.gating.call_keys import KeyOf, check_key, fill_key
from sayso.records.terms import LONGEST_WAIT_S, REPORT_WITHIN_S
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.tools import CallContext, Tool

if TYPE_CHECKING:
    from sayso.client.clients import AsyncClient, Client

P = ParamSpec("P")
R = TypeVar("R")
MOST_STEPS = 1_000_000
AnyClient: TypeAlias = "Client | AsyncClient | None"


@dataclass(frozen=True)
class Manner:
    """How a call is gated, whatever the call is."""

    client: AnyClient = None
    key: KeyOf = None
    title: str = ""
    context: JsonObject = field(default_factory=dict)
    wait_s: float | None = None
    on_doubt: OnDoubt = "raise"
    report_within_s: int = REPORT_WITHIN_S
    thread_id: str | None = None
    step: int | None = None
    quiet: bool = False

    def __post_init__(self) -> None:
        """Refuse now what would fail only after somebody was asked."""
        _check_manner(self.wait_s, self.on_doubt, self.report_within_s)
        if self.step is not None and not 1 <= self.step <= MOST_STEPS:
            raise InvalidInput(f"step={self.step!r} is no number of a turn; give 1 to {MOST_STEPS}, or None.")

    def want(self, definition: ToolDefinition, args: JsonObject) -> Wanted:
        """Return the call as it is wanted, under its key."""
        return Wanted(
            definition,
            args,
            fill_key(self.key, definition.name, args),
            self.title or definition.name,
            self.context,
            self.wait_s,
            self.on_doubt,
            self.report_within_s,
            self.thread_id,
            self.step,
            None if self.quiet else print_notice,
        )


class Gated(Generic[P, R]):
    """A function that runs only with somebody's leave, at most once for each key."""

    def __init__(self, function: Callable[P, R], tool: Tool, manner: Manner) -> None:
        functools.update_wrapper(self, function)
        self.tool = tool
        self.manner = manner
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)
        _check_client(manner.client, self._is_async, tool.name)
        check_key(manner.key, tool.name, self._signature().parameters)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Ask, wait, run once, report; returns what the function returned, now or when it ran before."""
        wanted = self.manner.want(self.tool.definition, self._read_args(args, kwargs))
        called: Any = self._call_async(wanted) if self._is_async else self._call(wanted)
        result: R = called
        return result

    def with_key(self, key: str) -> "Gated[P, R]":
        """Return the same function under this key: one that `Suspended` told of, or one of your own."""
        return Gated(self._function, self.tool, replace(self.manner, key=lambda **_: key))

    def _call(self, wanted: Wanted) -> Any:
        with _client_for(self.manner.client) as client:
            permission = client.run(obtain(client.patience, wanted))
            if isinstance(permission, Ran):
                return self._repeat(permission)
            call = Call(permission)
            try:
                function: Any = self._function
                call.result = self._refuse_awaitable(function(**self._bind(permission)))
            except Exception as error:
                report(client, call, error)
                raise
            report(client, call, None)
            return call.result

    async def _call_async(self, wanted: Wanted) -> Any:
        given = self.manner.client
        client = given if isinstance(given, sayso.AsyncClient) else sayso.AsyncClient()
        try:
            permission = await client.run(obtain(client.patience, wanted))
            if isinstance(permission, Ran):
                return self._repeat(permission)
            call = Call(permission)
            try:
                function: Any = self._function
                call.result = await function(**self._bind(permission))
            except Exception as error:
                await report_async(client, call, error)
                raise
            await report_async(client, call, None)
            return call.result
        finally:
            if client is not given:
                await client.close()

    def _bind(self, permission: Permission) -> dict[str, Any]:
        context = CallContext(permission.run_id, permission.item_id, permission.idempotency_key, permission.attempt)
        return self.tool.bind(permission.args, context)

    def _refuse_awaitable(self, result: Any) -> Any:
        """Return the result; raises `InvalidInput` for one still to be awaited: nobody here would know of it."""
        if not inspect.isawaitable(result):
            return result
        if inspect.iscoroutine(result):
            result.close()
        raise InvalidInput(
            f"{self.tool.name} is a plain def and returned something to be awaited, so nobody knows what comes of it. "
            "Make it an async def that awaits it."
        )

    def _read_args(self, args: Any, kwargs: Any) -> JsonObject:
        """Return the arguments by name, as plain JSON; raises `InvalidInput` for what does not fit the signature."""
        bound = self._signature().bind(*args, **kwargs)
        bound.apply_defaults()
        try:
            plain: JsonObject = to_jsonable_python(dict(bound.arguments))
        except (PydanticSerializationError, ValueError) as error:
            raise InvalidInput(f"The arguments of {self.tool.name} cannot be shown to a person: {error}") from error
        if fault := self.tool.find_fault(plain):
            raise InvalidInput(f"The arguments of {self.tool.name} do not fit: {fault}")
        return plain

    def _signature(self) -> inspect.Signature:
        """Return the signature of what the caller gives: the context of the call is filled in."""
        signature = inspect.signature(self._function)
        if not self.tool.takes_call:
            return signature
        return signature.replace(parameters=[one for name, one in signature.parameters.items() if name != "call"])

    def _repeat(self, ran: Ran) -> Any:
        output = describe_earlier(self.tool.name, ran)
        returns = get_type_hints(self._function, include_extras=True).get("return", Any)
        try:
            return TypeAdapter(returns).validate_python(output)
        except (ValidationError, PydanticUserError) as error:
            why = f"{self.tool.name} ran before; what is kept of its result is no {returns!r}, as it is annotated."
            raise CallFailed(f"{why} It is among the facts, as output.", output=output) from error


class Gate:
    """Some lines that run only with somebody's leave, for `with` and `async with`.

    A block cannot be left out: where it ran before, entering it raises `AlreadyRedeemed` with what came of it.
    """

    def __init__(self, definition: ToolDefinition, args: JsonObject, manner: Manner) -> None:
        check_key(manner.key, definition.name, args)
        self._wanted = manner.want(definition, args)
        self._client = manner.client
        self._own: Client | AsyncClient | None = None
        self._call: Call | None = None

    def __enter__(self) -> Call:
        _check_client(self._client, False, self._wanted.definition.name)
        if not isinstance(self._client, sayso.Client):
            self._client = self._own = sayso.Client()
        try:
            return self._open(self._client.run(obtain(self._client.patience, self._wanted)))
        except BaseException:
            self._close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._call is not None and isinstance(self._client, sayso.Client) and is_known(error):
                report(self._client, self._call, error)
        finally:
            self._close()

    async def __aenter__(self) -> Call:
        _check_client(self._client, True, self._wanted.definition.name)
        if not isinstance(self._client, sayso.AsyncClient):
            self._client = self._own = sayso.AsyncClient()
        try:
            return self._open(await self._client.run(obtain(self._client.patience, self._wanted)))
        except BaseException:
            await self._close_async()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._call is not None and isinstance(self._client, sayso.AsyncClient) and is_known(error):
                await report_async(self._client, self._call, error)
        finally:
            await self._close_async()

    def _open(self, permission: Permission | Ran) -> Call:
        if isinstance(permission, Ran):
            output = describe_earlier(self._wanted.definition.name, permission)
            raise AlreadyRedeemed(f"{self._wanted.definition.name} ran before, under this key.", output=output)
        self._call = Call(permission)
        return self._call

    def _close(self) -> None:
        if isinstance(self._own, sayso.Client):
            self._own.close()

    async def _close_async(self) -> None:
        if isinstance(self._own, sayso.AsyncClient):
            await self._own.close()


def print_notice(text: str) -> None:
    """Print one line to standard error; where that is closed the call goes on without it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"sayso: {text}", file=sys.stderr, flush=True)


def _check_manner(wait_s: Any, on_doubt: Any, within_s: Any) -> None:
    if wait_s is not None and not (isinstance(wait_s, int | float) and wait_s >= 0):
        raise InvalidInput(f"wait_s={wait_s!r} is no time to wait; give seconds, 0 or more, or None.")
    if on_doubt not in get_args(OnDoubt):
        raise InvalidInput(f"on_doubt={on_doubt!r} is not known; give 'raise' or 'ask'.")
    if not isinstance(within_s, int) or not 1 <= within_s <= LONGEST_WAIT_S:
        raise InvalidInput(f"report_within_s={within_s!r} is not 1 to {LONGEST_WAIT_S} whole seconds.")


def _check_client(client: AnyClient, is_async: bool, name: str) -> None:
    if client is None:
        return
    wanted = sayso.AsyncClient if is_async else sayso.Client
    if not isinstance(client, wanted):
        raise InvalidInput(f"{name} {'is async' if is_async else 'is not async'}; give it a {wanted.__name__}.")


@contextmanager
def _client_for(given: AnyClient) -> Generator["Client", None, None]:
    if isinstance(given, sayso.Client):
        yield given
        return
    with sayso.Client() as client:
        yield client
