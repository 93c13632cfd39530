"""Functions that `gate` returns: a `def` or `async def` like the one decorated, with `with_key` and `call`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from sayso.guarding.runs import note_gated

if TYPE_CHECKING:
    from sayso.gating.execution import Gated

P = ParamSpec("P")
R = TypeVar("R")
Bound = ParamSpec("Bound")


class GatedFunction(Protocol[P, R]):
    """A gated function. Frameworks see a function with the name, signature, types and docstring of the original."""

    __name__: str
    __qualname__: str

    @property
    def call(self) -> Gated[P, R]:
        """The gate behind the function, with its `tool` and `options`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function once it is approved, and return its result or that of an earlier attempt."""

    def with_key(self, key: str) -> GatedFunction[P, R]:
        """Return the same function under this key, such as the one in `Suspended`. A method takes its object first."""

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> GatedFunction[P, R]: ...

    @overload
    def __get__(
        self: GatedFunction[Concatenate[Any, Bound], R], instance: object, owner: type | None = None
    ) -> Callable[Bound, R]: ...


def build_function(gated: Gated[P, R]) -> GatedFunction[P, R]:
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
    function: GatedFunction[P, R] = note_gated(run)
    return function
