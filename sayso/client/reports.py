"""Report the result of an approved call, or replay an earlier one."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from sayso.canonical_json import JsonObject
from sayso.client.permits import EarlierResult, RedeemedPermit
from sayso.client.requests import report_outcome
from sayso.client.retries import Flow, RetryPolicy, send
from sayso.errors import CallFailed, InvalidJson, SaysoError
from sayso.runner.tools import describe_error, plain_json

MAX_OUTPUT_BYTES = 100_000
"""The largest result that is stored with the run."""

_LOG = logging.getLogger("sayso")


@dataclass
class Call:
    """A call that may run: use exactly `args`, and set `result`."""

    permit: RedeemedPermit
    result: Any = None

    @property
    def args(self) -> JsonObject:
        """The approved arguments, including a reviewer's edits."""
        return self.permit.args

    @property
    def idempotency_key(self) -> str:
        """The same key for every attempt of this call. Pass it to the systems that the call changes."""
        return self.permit.idempotency_key


def report(policy: RetryPolicy, call: Call, error: BaseException | None) -> Flow[None]:
    """Report how a call ended. A report that fails is logged: the call has run, so its result must not be lost."""
    success, output, note = (False, None, describe_error(error)) if error is not None else _fit(call.result)
    permit = call.permit
    request = report_outcome(permit.suspension_id, permit.item_id, permit.holder, success, output, note)
    try:
        yield from send(policy, request)
    except SaysoError as failure:
        _LOG.warning("The outcome of %s could not be reported: %s", call.idempotency_key, failure.message)


def replay(name: str, earlier: EarlierResult) -> JsonValue:
    """Return the output of an earlier attempt. Raises `CallFailed` if it failed or its output was not stored."""
    report = earlier.report
    if not report.success:
        raise CallFailed(f"{name} ran before and failed: {report.error}. Use a new key to try again.")
    if report.error is not None:
        raise CallFailed(f"{name} ran before, but its result was not stored: {report.error}")
    return report.output


def _fit(returned: Any) -> tuple[bool, JsonValue, str | None]:
    if isinstance(returned, Iterator):  # reading it here would leave nothing for the caller
        return True, None, "The call ran; its result can be read only once, so it is not stored."
    try:
        output = plain_json(returned)
        size = len(to_json(output))
    except InvalidJson as error:
        return True, None, error.message[:1000]
    if size > MAX_OUTPUT_BYTES:
        return True, None, f"The call ran; its result of {size} bytes is too large to store."
    return True, output, None
