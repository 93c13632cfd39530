"""Index the open items of a store that an earlier version of Sayso has filled."""

import asyncio

import structlog

from sayso.core.clock import now_ms
from sayso.errors import Unavailable
from service.store.inbox.buckets import Buckets
from service.wiring import Wiring

_AGAIN_AFTER_S = 1.0

_LOG = structlog.get_logger(__name__)


async def file_open_items(wiring: Wiring) -> None:
    """Put all open items into their buckets, once in a store; wait for the store."""
    while True:
        try:
            filed = await wiring.part(Buckets).complete(now_ms())
        except Unavailable:
            await asyncio.sleep(_AGAIN_AFTER_S)
            continue
        if filed:
            _LOG.info("open_items_filed", count=filed)
        return
