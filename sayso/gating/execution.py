"""Gated functions and blocks: their options, a permit, one run of the call at most, and the report of its result."""

import asyncio
import contextlib
import functools
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from types import TracebackType
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sayso.client import AsyncClient, Client, permits
from sayso.client.holders import run_as
from sayso.client.shared import find_async_client, find_client
from sayso.core.canonical_json import JsonObject
from sayso.core.records.terms import LONGEST_WAIT_S
from sayso.core.records.tools import ToolDefinition
from sayso.errors import AlreadyRedeemed, CallFailed, Denied, InvalidInput
from sayso.gating.parameters import KeyOf, Parameters, check_key, fill_key
from sayso.gating.registrations import is_called_again
from sayso.guarding.runs import note_gated
from sayso.runner.tools import CallContext, Tool

AnyClient: TypeAlias = Client | AsyncClient | None
OnDenied: TypeAlias = Literal["raise", "return"]

_MAX_STEP = 1_000_000
_BLOCKS_LOOP = ". The event loop of this thread stands still until then: use {name}.as_async, or make it an async def"


@dataclass(frozen=True)
class GateOptions(permits.CallOptions):
    """The options of a gated function or block."""

    client: AnyClient = None
    """`Client` or `AsyncClient` to use; by default one that reads `SAYSO_URL` and `SAYSO_KEY`."""
    key: KeyOf = None
    """Identity of the call with its tool and arguments: text such as `"refund-{order}"`, filled with the arguments, or
    a function of them. Without a key each call is new."""
    quiet: bool = False
    """Print nothing while the call waits; otherwise one line with the item's link goes to standard error."""
    on_denied: OnDenied = "raise"
    """With `"return"` a denied function returns `Denied.for_model`, a sentence for the model; by default it raises.
    CrewAI calls a tool that raises again, so there a denied function always returns."""

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a wrong option before anybody is asked."""
        wait_s: Any = self.wait_s
        if wait_s is not None and not (isinstance(wait_s, int | float) and wait_s >= 0):
            raise InvalidInput(f"wait_s={wait_s!r} is not a waiting time. Give seconds, 0 or more, or None.")
        if self.on_denied not in get_args(OnDenied):
            raise InvalidInput(f"on_denied={self.on_denied!r} is unknown. Give 'raise' or 'return'.")
        if self.on_doubt not in get_args(permits.OnDoubt):
            raise InvalidInput(f"on_doubt={self.on_doubt!r} is unknown. Give 'raise' or 'ask'.")
        within_s: Any = self.report_within_s
        if not isinstance(within_s, int) or not 1 <= within_s <= LONGEST_WAIT_S:
            raise InvalidInput(f"report_within_s={within_s!r} is not 1 to {LONGEST_WAIT_S} whole seconds.")
        if self.revises and not all(self.revises.partition("/")):
            raise InvalidInput(f"revises={self.revises!r} is no item. Give ChangesRequested.item.")
        if self.step is not None and not 1 <= self.step <= _MAX_STEP:
            raise InvalidInput(f"step={self.step!r} is not the number of a turn. Give 1 to {_MAX_STEP}, or None.")

    def build_call(self, definition: ToolDefinition, args: JsonObject) -> permits.GatedCall:
        label, notify = fill_key(self.key, definition.name, args), None if self.quiet else print_notice
        shared = {field.name: getattr(self, field.name) for field in fields(permits.CallOptions)}
        call = permits.GatedCall(definition, args, label, notify, **shared)
        return call if self.title else replace(call, title=definition.name)


def print_notice(text: str) -> None:
    """Print one line to standard error, if it is open."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"sayso: {text}", file=sys.stderr, flush=True)


def warn_in_loop(call: permits.GatedCall) -> permits.GatedCall:
    """Return the call. Within an event loop its notice adds that the loop stands still while a plain def waits."""
    notify = call.notify
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call
    if notify is None:
        return call
    return replace(call, notify=lambda text: notify(f"{text}{_BLOCKS_LOOP.format(name=call.definition.name)}"))


def check_client(client: AnyClient, is_async: bool, name: str) -> None:
    """Raise `InvalidInput` for a blocking client of an async call, or the other way round."""
    expected = AsyncClient if is_async else Client
    if client is not None and not isinstance(client, expected):
        raise InvalidInput(f"{name} {'is async' if is_async else 'is not async'}; give it a {expected.__name__}.")


P = ParamSpec("P")
R = TypeVar("R")


@contextlib.contextmanager
def _open_call(gated: permits.GatedCall, given: AnyClient) -> Iterator[permits.Call | permits.EarlierResult]:
    """Obtain a permit and report how the block ends, unless interrupted (`KeyboardInterrupt`): effect unknown."""
    client = given if isinstance(given, Client) else find_client()
    permit = client.run(permits.obtain_permit(client.retry_policy, gated))
    if isinstance(permit, permits.EarlierResult):
        yield permit
        return
    call = permits.Call(permit)
    with run_as(permit.holder):
        try:
            yield call
        except Exception as error:
            client.run(permits.report(client.retry_policy, call, error))
            raise
        client.run(permits.report(client.retry_policy, call, None))


@contextlib.asynccontextmanager
async def _open_call_async(
    gated: permits.GatedCall, given: AnyClient
) -> AsyncIterator[permits.Call | permits.EarlierResult]:
    client = given if isinstance(given, AsyncClient) else await find_async_client()
    permit = await client.run(permits.obtain_permit(client.retry_policy, gated))
    if isinstance(permit, permits.EarlierResult):
        yield permit
        return
    call = permits.Call(permit)
    with run_as(permit.holder):
        try:
            yield call
        except Exception as error:
            await client.run(permits.report(client.retry_policy, call, error))
            raise
        await client.run(permits.report(client.retry_policy, call, None))


class Gated(Generic[P, R]):
    """A function that runs only with a permit, at most once for each key.

    One that `offloads` is a plain def to await: the call waits in the event loop, and the def runs in a thread.
    """

    def __init__(
        self,
        function: Callable[P, R],
        tool: Tool,
        options: GateOptions,
        parameters: Parameters,
        *,
        offloads: bool = False,
    ) -> None:
        self.function: Callable[..., Any] = function
        self.tool = tool
        self.options = options
        self.parameters = parameters
        self.offloads = offloads
        self.is_async = offloads or inspect.iscoroutinefunction(function)
        check_client(options.client, self.is_async and not offloads, tool.name)
        check_key(options.key, tool.name, parameters.arguments)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function once it is approved, and return its result or that of an earlier attempt."""
        given, positional, injected = self.parameters.split(args, kwargs)
        try:
            plain: JsonObject = to_jsonable_python(given)
        except (PydanticSerializationError, ValueError) as error:
            raise InvalidInput(f"The arguments of {self.tool.name} cannot be written as JSON: {error}") from error
        if fault := self.tool.find_fault(plain):
            raise InvalidInput(f"The arguments of {self.tool.name} do not fit: {fault}")
        gated = self.options.build_call(self.tool.definition, plain)
        run = functools.partial(self.function, *positional, **injected)
        returns = self.options.on_denied == "return" or is_called_again()
        result: Any
        if self.offloads and self.options.client is not None:
            result = asyncio.to_thread(self._call, gated, run, returns)
        else:
            result = (self._call_async if self.is_async else self._call)(gated, run, returns)
        typed: R = result
        return typed

    def with_key(self, key: str) -> "Gated[P, R]":
        """Return the same function under this key, such as the one in `Suspended`."""
        function: Callable[P, R] = self.function
        options = replace(self.options, key=lambda **_: key)
        return Gated(function, self.tool, options, self.parameters, offloads=self.offloads)

    def revising(self, item: str) -> "Gated[P, R]":
        """Return the same function, for a new version of a call that a reviewer returned: `ChangesRequested.item`."""
        function: Callable[P, R] = self.function
        options = replace(self.options, revises=item)
        return Gated(function, self.tool, options, self.parameters, offloads=self.offloads)

    def to_async(self) -> "Gated[P, Any]":
        """Return a plain def as one to await."""
        return Gated(self.function, self.tool, self.options, self.parameters, offloads=True)

    def _call(self, gated: permits.GatedCall, run: Callable[..., Any], returns: bool) -> Any:
        with contextlib.ExitStack() as opening:
            try:
                call = opening.enter_context(_open_call(warn_in_loop(gated), self.options.client))
            except Denied as denied:
                if not returns:
                    raise
                return denied.for_model
            if isinstance(call, permits.EarlierResult):
                return self._replay(call)
            call.result = self._refuse_awaitable(run(**self._bind(call.permit)))
            return call.result

    async def _call_async(self, gated: permits.GatedCall, run: Callable[..., Any], returns: bool) -> Any:
        async with contextlib.AsyncExitStack() as opening:
            try:
                call = await opening.enter_async_context(_open_call_async(gated, self.options.client))
            except Denied as denied:
                if not returns:
                    raise
                return denied.for_model
            if isinstance(call, permits.EarlierResult):
                return self._replay(call)
            bound = functools.partial(run, **self._bind(call.permit))
            call.result = self._refuse_awaitable(await asyncio.to_thread(bound)) if self.offloads else await bound()
            return call.result

    def _refuse_awaitable(self, result: Any) -> Any:
        if not inspect.isawaitable(result):
            return result
        if inspect.iscoroutine(result):
            result.close()
        raise InvalidInput(  # its end could not be reported
            f"{self.tool.name} is a plain def that returned an awaitable, so its result cannot be reported. "
            "Make it an async def that awaits it."
        )

    def _bind(self, permit: permits.RedeemedPermit) -> dict[str, Any]:
        context = CallContext(permit.run_id, permit.item_id, permit.idempotency_key, permit.attempt)
        return self.tool.bind(permit.args, context)

    def _replay(self, earlier: permits.EarlierResult) -> Any:
        output = permits.replay(self.tool.name, earlier)
        returns = get_type_hints(self.function, include_extras=True).get("return", Any)
        try:
            return TypeAdapter(returns).validate_python(output)
        except (ValidationError, PydanticUserError) as error:
            raise CallFailed(
                f"{self.tool.name} ran before; its stored result is not of the annotated type {returns!r}. "
                "The facts of this error have it as output.",
                output=output,
            ) from error


Bound = ParamSpec("Bound")


class GatedFunction(Protocol[P, R]):
    """A gated function. Frameworks see a function with the name, signature, types and docstring of the original."""

    __name__: str
    __qualname__: str

    @property
    def call(self) -> "Gated[P, R]":
        """The gate behind the function, with its `tool` and `options`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function once it is approved, and return its result or that of an earlier attempt."""

    @property
    def as_async(self) -> Callable[P, Coroutine[Any, Any, Any]]:
        """The same function as an `async def`, for an event loop: it waits there, and a plain `def` runs in a thread.

        A method takes its object first.
        """

    def with_key(self, key: str) -> "GatedFunction[P, R]":
        """Return the same function under this key, such as the one in `Suspended`. A method takes its object first."""

    def revising(self, item: str) -> "GatedFunction[P, R]":
        """Return the same function, for a new version of a call that a reviewer returned: `ChangesRequested.item`."""

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "GatedFunction[P, R]": ...

    @overload
    def __get__(
        self: "GatedFunction[Concatenate[Any, Bound], R]", instance: object, owner: type | None = None
    ) -> Callable[Bound, R]: ...


def build_function(gated: Gated[P, R]) -> "GatedFunction[P, R]":
    """Return the function to call instead of the original one."""
    run: Any
    if gated.is_async:

        @functools.wraps(gated.function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            return await cast(Any, gated(*args, **kwargs))

        run = run_async
    else:

        @functools.wraps(gated.function)
        def run_blocking(*args: Any, **kwargs: Any) -> Any:
            return gated(*args, **kwargs)

        run = run_blocking
    signature = gated.parameters.signature
    run.__signature__ = signature
    annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()} | {
        "return": signature.return_annotation
    }
    run.__annotations__ = {name: hint for name, hint in annotations.items() if hint is not signature.empty}
    run.call = gated
    run.with_key = lambda key: build_function(gated.with_key(key))
    run.revising = lambda item: build_function(gated.revising(item))
    run.as_async = run if gated.is_async else build_function(gated.to_async())
    function: GatedFunction[P, R] = note_gated(run)
    return function


class Gate:
    """A block that runs only with a permit. Entering one that ran before raises `AlreadyRedeemed` with its output."""

    def __init__(self, definition: ToolDefinition, args: JsonObject, options: GateOptions) -> None:
        check_key(options.key, definition.name, args)
        if options.on_denied != "raise":
            raise InvalidInput(f"A block has no result to return. Catch Denied around the block of {definition.name}.")
        self._gated = options.build_call(definition, args)
        self._client = options.client
        self._session = contextlib.ExitStack()
        self._async_session = contextlib.AsyncExitStack()

    def __enter__(self) -> permits.Call:
        check_client(self._client, False, self._gated.definition.name)
        with contextlib.ExitStack() as opening:
            call = self._refuse_earlier(opening.enter_context(_open_call(self._gated, self._client)))
            self._session = opening.pop_all()
            return call

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__(kind, error, trace)

    async def __aenter__(self) -> permits.Call:
        check_client(self._client, True, self._gated.definition.name)
        async with contextlib.AsyncExitStack() as opening:
            call = self._refuse_earlier(await opening.enter_async_context(_open_call_async(self._gated, self._client)))
            self._async_session = opening.pop_all()
            return call

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._async_session.__aexit__(kind, error, trace)

    def _refuse_earlier(self, call: permits.Call | permits.EarlierResult) -> permits.Call:
        if isinstance(call, permits.EarlierResult):
            name = self._gated.definition.name
            raise AlreadyRedeemed(f"{name} ran before with this key.", output=permits.replay(name, call))
        return call
