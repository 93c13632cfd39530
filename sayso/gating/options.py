"""The options of a gate, and the call that it builds from them."""

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, get_args

from sayso.client import AsyncClient, Client
from sayso.client.permits import CallOptions, GatedCall, OnDoubt
from sayso.core.canonical_json import JsonObject
from sayso.core.records.terms import LONGEST_WAIT_S
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput
from sayso.gating.parameters import KeyOf, fill_key

AnyClient: TypeAlias = Client | AsyncClient | None

_MAX_STEP = 1_000_000
_BLOCKS_LOOP = ". The event loop of this thread stands still until then: make {name} an async def"


@dataclass(frozen=True)
class GateOptions(CallOptions):
    """The options of a gated function or block."""

    client: AnyClient = None
    key: KeyOf = None
    quiet: bool = False

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a wrong option before anybody is asked."""
        wait_s: Any = self.wait_s
        if wait_s is not None and not (isinstance(wait_s, int | float) and wait_s >= 0):
            raise InvalidInput(f"wait_s={wait_s!r} is not a waiting time. Give seconds, 0 or more, or None.")
        if self.on_doubt not in get_args(OnDoubt):
            raise InvalidInput(f"on_doubt={self.on_doubt!r} is unknown. Give 'raise' or 'ask'.")
        within_s: Any = self.report_within_s
        if not isinstance(within_s, int) or not 1 <= within_s <= LONGEST_WAIT_S:
            raise InvalidInput(f"report_within_s={within_s!r} is not 1 to {LONGEST_WAIT_S} whole seconds.")
        if self.step is not None and not 1 <= self.step <= _MAX_STEP:
            raise InvalidInput(f"step={self.step!r} is not the number of a turn. Give 1 to {_MAX_STEP}, or None.")

    def build_call(self, definition: ToolDefinition, args: JsonObject) -> GatedCall:
        label, notify = fill_key(self.key, definition.name, args), None if self.quiet else print_notice
        shared = {field.name: getattr(self, field.name) for field in fields(CallOptions)}
        call = GatedCall(definition, args, label, notify, **shared)
        return call if self.title else replace(call, title=definition.name)


def print_notice(text: str) -> None:
    """Print one line to standard error, if it is open."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"sayso: {text}", file=sys.stderr, flush=True)


def warn_in_loop(call: GatedCall) -> GatedCall:
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
