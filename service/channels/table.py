"""The table of channels: one row for each kind, and the channels of a process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from service.channels.base import Channel
from service.channels.config import ChannelConfig, read_channels
from service.channels.mail.outbound import MailChannel, MailConfig
from service.settings import Settings


@dataclass(frozen=True)
class ChannelKind:
    """A kind of channel: its fields in the channels file, and how to open one."""

    config: type[ChannelConfig]
    open: Callable[[Any], Channel]


KINDS: Mapping[str, ChannelKind] = {
    "mail": ChannelKind(MailConfig, MailChannel),
}
"""All kinds of channel by name."""


@dataclass(frozen=True)
class Channels:
    """The open channels of one process."""

    by_name: Mapping[str, Channel] = field(default_factory=dict)

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
    return Channels({one.name: KINDS[one.kind].open(one) for one in configs})
