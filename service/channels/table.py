"""The table of channels: one row for each kind, and the channels of a process."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter

from service.channels.base import Channel
from service.channels.config import ChannelConfig, read_channels
from service.settings import Settings
from service.wiring import Wiring

Listen = Callable[[Any, Wiring, asyncio.Event], Coroutine[Any, Any, None]]
"""Receives what people send, until the event is set: for providers that are polled, or keep a socket open."""


@dataclass(frozen=True)
class ChannelKind:
    """A kind of channel: its fields in the channels file, how to open one, and how decisions come in.

    `router` has the routes that the provider calls. `listen` runs in one process at a time for each channel; the
    listener returns at once for a channel that needs none. `sample` has the fields without a default, for previews.
    """

    config: type[ChannelConfig]
    open: Callable[[Any], Channel]
    router: APIRouter | None = None
    listen: Listen | None = None
    sample: Mapping[str, object] = field(default_factory=dict)


KINDS: Mapping[str, ChannelKind] = {}
"""All kinds of channel by name."""


@dataclass(frozen=True)
class Channels:
    """The open channels of one process."""

    by_name: Mapping[str, Channel] = field(default_factory=dict)
    configs: Mapping[str, ChannelConfig] = field(default_factory=dict)

    def find(self, name: str) -> Channel | None:
        """Return the channel of that name, or None."""
        return self.by_name.get(name)

    async def aclose(self) -> None:
        """Close all channels."""
        for channel in self.by_name.values():
            await channel.aclose()


def open_channels(settings: Settings) -> Channels:
    """Open the channels of the channels file; raises `InvalidChannels`."""
    configs = read_channels(settings.channels, {kind: row.config for kind, row in KINDS.items()})
    opened = {one.name: KINDS[one.kind].open(one) for one in configs}
    return Channels(opened, {one.name: one for one in configs})
