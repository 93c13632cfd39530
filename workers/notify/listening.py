"""Listeners of channels that are polled or keep a socket open: one process at a time for each channel."""

import asyncio
from contextlib import suppress
from functools import partial

from sayso.core.clock import new_id
from service.channels.base import Channel
from service.channels.kinds import KINDS, Channels, Listen
from service.core.store.attempts import NamedLeases
from service.core.wiring import Wiring
from workers.repeating import repeat

RENEW_S = 5.0


async def keep_listening(wiring: Wiring, channels: Channels, stopping: asyncio.Event) -> None:
    """Listen to every channel that has a listener, until stopped."""
    known = (channel for channel in channels.by_name.values() if channel.kind in KINDS)
    listeners = [(channel, KINDS[channel.kind].listen) for channel in known]
    await asyncio.gather(
        *(listen_by_lease(wiring, channel, listen, stopping) for channel, listen in listeners if listen is not None)
    )


async def listen_by_lease(
    wiring: Wiring, channel: Channel, listen: Listen, stopping: asyncio.Event, renew_s: float = RENEW_S
) -> None:
    """Listen while this process holds the channel's lease; start again after an error."""
    step = partial(_hold, wiring, channel, listen, new_id("listener"), stopping, renew_s)
    await repeat(step, renew_s, stopping, "listening_failed")


async def _hold(
    wiring: Wiring, channel: Channel, listen: Listen, holder: str, stopping: asyncio.Event, renew_s: float
) -> None:
    """Listen until the lease is lost, the listener ends, or `stopping` is set; raises the listener's error."""
    name = f"listen:{channel.name}"
    if not await wiring.part(NamedLeases).hold(name, holder):
        return
    ending = asyncio.Event()
    listening = asyncio.create_task(listen(channel, wiring, ending))
    stopped = asyncio.create_task(stopping.wait())
    try:
        while not listening.done() and not stopped.done():
            await asyncio.wait({listening, stopped}, timeout=renew_s, return_when=asyncio.FIRST_COMPLETED)
            if not await wiring.part(NamedLeases).hold(name, holder):
                return
        if listening.done():
            listening.result()
    finally:
        ending.set()
        stopped.cancel()
        listening.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await listening
        await wiring.part(NamedLeases).release(name, holder)
