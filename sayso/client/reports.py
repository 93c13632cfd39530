"""Say of a call that had leave to run what came of it, and of one that ran before what came of it then."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue
from pydantic_core import to_json

from sayso.canonical_json import JsonObject
from sayso.client.permits import Permission, Ran, conclude
from sayso.client.retries import Flow, Patience
from sayso.errors import CallFailed, InvalidJson, SaysoError
from sayso.runner.tools import describe_error, plain_json

if TYPE_CHECKING:
    from sayso.client.clients import AsyncClient, Client

MAX_OUTPUT_BYTES = 100_000
"""Results larger than this are not kept with the run; whoever calls again is told so."""

_LOG = logging.getLogger("sayso")


@dataclass
class Call:
    """A call with leave to run: run exactly `args`, and put what came of it in `result`."""

    permission: Permission
    result: Any = None

    @property
    def args(self) -> JsonObject:
        """The arguments that were decided on: as asked, or as a reviewer edited them."""
        return self.permission.args

    @property
    def idempotency_key(self) -> str:
        """Pass it on to whatever the call changes: it is the same for every try of this call."""
        return self.permission.idempotency_key


def is_known(error: BaseException | None) -> bool:
    """Whether it is known how the call ended: nobody knows what a call did that was broken off from outside."""
    return error is None or isinstance(error, Exception)


def report(client: "Client", call: Call, error: BaseException | None) -> None:
    """Report how the call ended; a report that cannot be made is logged, for the call has run."""
    try:
        client.run(_describe_outcome(client.patience, call, error))
    except SaysoError as lost:
        _log_lost(call, lost)


async def report_async(client: "AsyncClient", call: Call, error: BaseException | None) -> None:
    """Report how the call ended, with asyncio."""
    try:
        await client.run(_describe_outcome(client.patience, call, error))
    except SaysoError as lost:
        _log_lost(call, lost)


def _describe_outcome(patience: Patience, call: Call, error: BaseException | None) -> Flow[Any]:
    if error is not None:
        return conclude(patience, call.permission, False, None, describe_error(error))
    output, note = _fit(call.result)
    return conclude(patience, call.permission, True, output, note)


def _fit(returned: Any) -> tuple[JsonValue, str | None]:
    """Return a result as far as it can be kept, with a note where it cannot."""
    if isinstance(returned, Iterator):  # reading it here would leave nothing for whoever called
        return None, "The call ran; what it returned can be read only once, so it is not kept."
    try:
        output = plain_json(returned)
        size = len(to_json(output))
    except InvalidJson as error:
        return None, error.message[:1000]
    if size > MAX_OUTPUT_BYTES:
        return None, f"The call ran; its result of {size} bytes is too large to be kept."
    return output, None


def _log_lost(call: Call, lost: SaysoError) -> None:
    """The call has run and its result is returned; whoever asks again is told that it is in doubt."""
    _LOG.warning("The outcome of %s could not be reported: %s", call.idempotency_key, lost.message)


def describe_earlier(name: str, ran: Ran) -> JsonValue:
    """Return what an earlier try of the call returned; raises `CallFailed` where it failed or that is not kept."""
    if not ran.report.success:
        raise CallFailed(f"{name} ran before, and failed: {ran.report.error}. Use a new key to try again.")
    if ran.report.error is not None:
        raise CallFailed(f"{name} ran before, but its result is not kept: {ran.report.error}")
    return ran.report.output
