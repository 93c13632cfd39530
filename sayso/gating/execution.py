"""Gated functions and blocks: obtain a permit, run the call at most once, report its result."""

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sayso.client import AsyncClient, Client
from sayso.client.permits import Call, EarlierResult, GatedCall, RedeemedPermit, obtain_permit, replay, report
from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition
from sayso.errors import AlreadyRedeemed, CallFailed, InvalidInput
from sayso.gating.options import AnyClient, GateOptions, check_client, warn_in_loop
from sayso.gating.parameters import Parameters, check_key
from sayso.runner.tools import CallContext, Tool

P = ParamSpec("P")
R = TypeVar("R")


@contextlib.contextmanager
def _open_call(gated: GatedCall, given: AnyClient) -> Iterator[Call | EarlierResult]:
    """Obtain a permit and report how the block ends, unless interrupted (`KeyboardInterrupt`): effect unknown."""
    with contextlib.nullcontext(given) if isinstance(given, Client) else Client() as client:
        permit = client.run(obtain_permit(client.retry_policy, gated))
        if isinstance(permit, EarlierResult):
            yield permit
            return
        call = Call(permit)
        try:
            yield call
        except Exception as error:
            client.run(report(client.retry_policy, call, error))
            raise
        client.run(report(client.retry_policy, call, None))


@contextlib.asynccontextmanager
async def _open_call_async(gated: GatedCall, given: AnyClient) -> AsyncIterator[Call | EarlierResult]:
    async with contextlib.nullcontext(given) if isinstance(given, AsyncClient) else AsyncClient() as client:
        permit = await client.run(obtain_permit(client.retry_policy, gated))
        if isinstance(permit, EarlierResult):
            yield permit
            return
        call = Call(permit)
        try:
            yield call
        except Exception as error:
            await client.run(report(client.retry_policy, call, error))
            raise
        await client.run(report(client.retry_policy, call, None))


class Gated(Generic[P, R]):
    """A function that runs only with a permit, at most once for each key."""

    def __init__(self, function: Callable[P, R], tool: Tool, options: GateOptions, parameters: Parameters) -> None:
        self.function: Callable[..., Any] = function
        self.tool = tool
        self.options = options
        self.parameters = parameters
        self.is_async = inspect.iscoroutinefunction(function)
        check_client(options.client, self.is_async, tool.name)
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
        result: Any = self._call_async(gated, run) if self.is_async else self._call(gated, run)
        typed: R = result
        return typed

    def with_key(self, key: str) -> "Gated[P, R]":
        """Return the same function under this key, such as the one in `Suspended`."""
        function: Callable[P, R] = self.function
        return Gated(function, self.tool, replace(self.options, key=lambda **_: key), self.parameters)

    def _call(self, gated: GatedCall, run: Callable[..., Any]) -> Any:
        with _open_call(warn_in_loop(gated), self.options.client) as call:
            if isinstance(call, EarlierResult):
                return self._replay(call)
            call.result = self._refuse_awaitable(run(**self._bind(call.permit)))
            return call.result

    async def _call_async(self, gated: GatedCall, run: Callable[..., Any]) -> Any:
        async with _open_call_async(gated, self.options.client) as call:
            if isinstance(call, EarlierResult):
                return self._replay(call)
            call.result = await run(**self._bind(call.permit))
            return call.result

    def _bind(self, permit: RedeemedPermit) -> dict[str, Any]:
        context = CallContext(permit.run_id, permit.item_id, permit.idempotency_key, permit.attempt)
        return self.tool.bind(permit.args, context)

    def _refuse_awaitable(self, result: Any) -> Any:
        """Return the result. Raises `InvalidInput` for an awaitable: its end could not be reported."""
        if not inspect.isawaitable(result):
            return result
        if inspect.iscoroutine(result):
            result.close()
        raise InvalidInput(
            f"{self.tool.name} is a plain def that returned an awaitable, so its result cannot be reported. "
            "Make it an async def that awaits it."
        )

    def _replay(self, earlier: EarlierResult) -> Any:
        output = replay(self.tool.name, earlier)
        returns = get_type_hints(self.function, include_extras=True).get("return", Any)
        try:
            return TypeAdapter(returns).validate_python(output)
        except (ValidationError, PydanticUserError) as error:
            raise CallFailed(
                f"{self.tool.name} ran before; its stored result is not of the annotated type {returns!r}. "
                "The facts of this error have it as output.",
                output=output,
            ) from error


class Gate:
    """A block that runs only with a permit. Entering one that ran before raises `AlreadyRedeemed` with its output."""

    def __init__(self, definition: ToolDefinition, args: JsonObject, options: GateOptions) -> None:
        check_key(options.key, definition.name, args)
        self._gated = options.build_call(definition, args)
        self._client = options.client
        self._session: contextlib.AbstractContextManager[Call]
        self._async_session: contextlib.AbstractAsyncContextManager[Call]

    def __enter__(self) -> Call:
        check_client(self._client, False, self._gated.definition.name)
        self._session = self._open()
        return self._session.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__(kind, error, trace)

    async def __aenter__(self) -> Call:
        check_client(self._client, True, self._gated.definition.name)
        self._async_session = self._open_async()
        return await self._async_session.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._async_session.__aexit__(kind, error, trace)

    @contextlib.contextmanager
    def _open(self) -> Iterator[Call]:
        with _open_call(self._gated, self._client) as call:
            yield self._refuse_earlier(call)

    @contextlib.asynccontextmanager
    async def _open_async(self) -> AsyncIterator[Call]:
        async with _open_call_async(self._gated, self._client) as call:
            yield self._refuse_earlier(call)

    def _refuse_earlier(self, call: Call | EarlierResult) -> Call:
        if isinstance(call, EarlierResult):
            name = self._gated.definition.name
            raise AlreadyRedeemed(f"{name} ran before with this key.", output=replay(name, call))
        return call
