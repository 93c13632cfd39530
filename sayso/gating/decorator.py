"""Put a person before any Python function: `@gate` on it, or `with gate("name", args) as call:` around some lines.

The call is asked about, waited for, run at most once, and reported. The libraries that this takes are imported with
the first gate: a script that merely names `gate` starts at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from sayso.canonical_json import JsonObject
    from sayso.client.permits import OnDoubt
    from sayso.gating.call_keys import KeyOf
    from sayso.gating.execution import AnyClient, Gate, Gated

P = ParamSpec("P")
R = TypeVar("R")


@overload
def gate(function: Callable[P, R], /) -> Gated[P, R]: ...


@overload
def gate(
    function: None = None,
    /,
    *,
    client: AnyClient = None,
    key: KeyOf = None,
    name: str | None = None,
    description: str | None = None,
    idempotent: bool = False,
    title: str = "",
    context: JsonObject | None = None,
    wait_s: float | None = None,
    on_doubt: OnDoubt = "raise",
    report_within_s: int = ...,
    thread_id: str | None = None,
    step: int | None = None,
    quiet: bool = False,
) -> Callable[[Callable[P, R]], Gated[P, R]]: ...


@overload
def gate(
    function: str,
    args: JsonObject,
    /,
    *,
    client: AnyClient = None,
    key: KeyOf = None,
    schema: JsonObject | None = None,
    description: str | None = None,
    idempotent: bool = False,
    title: str = "",
    context: JsonObject | None = None,
    wait_s: float | None = None,
    on_doubt: OnDoubt = "raise",
    report_within_s: int = ...,
    thread_id: str | None = None,
    step: int | None = None,
    quiet: bool = False,
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
    **manner: Any,
) -> Any:
    """Let a function, or a block, run only with somebody's leave.

    `key` names the call for good: text such as `"refund-{order}"`, filled with the arguments, or a function of them.
    Without one every call is a new question. `wait_s` is how long to wait before `Suspended` is raised: until the
    deadline by default, 0 for not at all. `on_doubt` says what becomes of a call that an earlier process began and
    never reported: `raise`, or `ask` a person. `report_within_s` is how long the call itself may take. `schema` is the
    JSON Schema of a block's arguments: reviewers edit them in fields, and only arguments that fit are taken.

    Calls under one `thread_id` are counted by the desk, and rules see the number as `step`; give `step` where you know
    the number of the model's turn yourself.

    A call that waits for a person prints one line to standard error, with the link to the item; `quiet` turns it off.
    """
    from sayso.errors import InvalidInput
    from sayso.gating.execution import Gate, Gated, Manner
    from sayso.records.tool_calls import define
    from sayso.runner.tools import tool
    from sayso.schemas.bounds import weigh

    how = Manner(context=context or {}, **manner)
    if isinstance(function, str):
        if schema is not None:
            weigh(schema)
        definition = define(function, description or "", schema or {"type": "object"}, idempotent)
        return Gate(definition, args or {}, how)
    if schema is not None:
        raise InvalidInput("A function's signature is its schema; give schema with a block alone.")

    def decorate(function: Callable[P, R]) -> Gated[P, R]:
        made = tool(idempotent=idempotent, name=name, description=description)(function)
        return Gated(function, made, how)

    return decorate if function is None else decorate(function)
