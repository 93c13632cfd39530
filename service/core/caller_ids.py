"""The ids that a caller gives a request: its request id, and the place of the caller in a trace."""

from contextvars import ContextVar
from typing import NamedTuple


class CallerIds(NamedTuple):
    """The well-formed ids of a request; empty where the caller sent none."""

    request_id: str = ""
    traceparent: str = ""


NO_IDS = CallerIds()
current_ids: ContextVar[CallerIds] = ContextVar("caller_ids", default=NO_IDS)
"""The ids of the request that this task serves."""
