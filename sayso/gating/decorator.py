"""`@gate` for functions, and `with gate("name", args) as call:` for blocks. The first imports pydantic and httpx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from sayso.client.permits import OnDoubt
    from sayso.core.canonical_json import JsonObject
    from sayso.gating.execution import AnyClient, Gate, GatedFunction, OnDenied
    from sayso.gating.parameters import KeyOf

    class _Options(TypedDict, total=False):
        client: AnyClient
        key: KeyOf
        title: str
        context: JsonObject | None
        wait_s: float | None
        on_doubt: OnDoubt
        on_denied: OnDenied
        report_within_s: int
        thread_id: str | None
        step: int | None
        again: bool
        revises: str
        on_behalf_of: str | Callable[[], str | None] | None
        quiet: bool


P = ParamSpec("P")
R = TypeVar("R")


@overload
def gate(function: Callable[P, R], /) -> GatedFunction[P, R]: ...


@overload
def gate(
    function: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    idempotent: bool = False,
    **options: Unpack[_Options],
) -> Callable[[Callable[P, R]], GatedFunction[P, R]]: ...


@overload
def gate(
    function: str,
    args: JsonObject,
    /,
    *,
    schema: JsonObject | None = None,
    description: str | None = None,
    idempotent: bool = False,
    **options: Unpack[_Options],
) -> Gate: ...


def gate(
    function: Any = None,
    args: JsonObject | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    idempotent: bool = False,
    schema: JsonObject | None = None,
    context: JsonObject | None = None,
    **options: Any,
) -> Any:
    """Require a permit for a function, a method or a block.

    The decorated function stays a `def` or `async def` with its signature, so frameworks accept it below their own
    decorators. Its `with_key` continues an earlier call, and its `revising` makes a new version of one that a reviewer
    returned; its `call` is the gate behind it.

    `options` are those of `sayso.gating.execution.GateOptions`. `schema` is the JSON Schema of a block's arguments:
    reviewers edit them in a form, and other arguments are refused. `idempotent` declares that a second run of a call
    that may have run does no harm.
    """
    from dataclasses import replace

    from sayso.core.records.tools import define
    from sayso.core.schemas.bounds import weigh
    from sayso.errors import InvalidInput
    from sayso.gating.execution import Gate, Gated, GateOptions, build_function
    from sayso.gating.parameters import read_parameters
    from sayso.gating.registrations import check_unregistered
    from sayso.runner.tools import tool

    given = GateOptions(context=context or {}, **options)
    if isinstance(function, str):
        if schema is not None:
            weigh(schema)
        definition = define(function, description or "", schema or {"type": "object"}, idempotent)
        return Gate(definition, args or {}, given)
    if schema is not None:
        raise InvalidInput("A function takes its schema from its signature. Give schema only with a block.")

    def decorate(function: Any, static: bool = False, references: int = 1) -> Any:
        if isinstance(function, staticmethod | classmethod):
            return type(function)(decorate(function.__func__, isinstance(function, staticmethod)))
        label = str(name or getattr(function, "__name__", ""))
        check_unregistered(function, label, references)
        parameters = read_parameters(function, label, static=static)
        made = tool(idempotent=idempotent, name=name, description=description)(parameters.stand_in)
        return build_function(Gated(function, replace(made, function=function), given, parameters))

    return decorate if function is None else decorate(function, references=2)
