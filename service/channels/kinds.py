"""The table of channels: one row for each kind, and the channels of a process."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter
from pydantic import JsonValue, SecretStr

from sayso.core.canonical_json import canonical_json
from service.channels.base import Background, Channel
from service.channels.config import ChannelConfig, Setting, describe_settings, read_channels
from service.channels.mail import MailChannel, MailConfig
from service.channels.notice import NoticeChannel, NoticeConfig
from service.channels.ntfy import NtfyChannel, NtfyConfig
from service.channels.push import PushChannel, PushConfig
from service.channels.slack.answering import listen as listen_to_slack
from service.channels.slack.answering import router as slack_router
from service.channels.slack.api import SlackConfig
from service.channels.slack.outbound import SlackChannel
from service.channels.teams.inbound import router as teams_router
from service.channels.teams.outbound import TeamsChannel, TeamsConfig, WorkflowChannel, WorkflowConfig
from service.channels.telegram.inbound import listen as listen_to_telegram
from service.channels.telegram.outbound import TelegramChannel, TelegramConfig
from service.core.outgoing.http import export_proxy
from service.core.settings import Settings
from service.core.wiring import Wiring

Listen = Callable[[Any, Wiring, asyncio.Event], Coroutine[Any, Any, None]]
"""Receives what people send, until the event is set: for providers that are polled, or keep a socket open."""


@dataclass(frozen=True)
class ChannelKind:
    """A kind of channel: its fields in the channels file, how to open one, and how decisions come in.

    `router` has the routes that the provider calls. `listen` runs in one process at a time for each channel; the
    listener returns at once for a channel that needs none. `attach` gives the parts of its process to a channel that
    keeps something in the store. `sample` has the fields without a default, for previews.
    """

    config: type[ChannelConfig]
    open: Callable[[Any], Channel]
    router: APIRouter | None = None
    listen: Listen | None = None
    attach: Callable[[Any, Wiring], None] | None = None
    sample: Mapping[str, object] = field(default_factory=dict)


_SLACK = {"app_id": "A0SAMPLE", "team_id": "T0SAMPLE", "bot_token": "xoxb-sample", "app_token": "xapp-sample"}
_GUID = "00000000-0000-0000-0000-000000000000"
_TEAMS = {"app_id": _GUID, "app_password": "sample", "tenant_id": _GUID}
_TELEGRAM = {"bot_token": f"1:{'sample' * 4}"}

KINDS: Mapping[str, ChannelKind] = {
    "slack": ChannelKind(SlackConfig, SlackChannel, slack_router, listen_to_slack, SlackChannel.attach, _SLACK),
    "teams": ChannelKind(TeamsConfig, TeamsChannel, teams_router, sample=_TEAMS),
    "teams_workflow": ChannelKind(WorkflowConfig, WorkflowChannel, sample={"url": "https://teams.example/workflow"}),
    "telegram": ChannelKind(TelegramConfig, TelegramChannel, listen=listen_to_telegram, sample=_TELEGRAM),
    "mail": ChannelKind(MailConfig, MailChannel, sample={"host": "mail.example", "sender": "sayso@mail.example"}),
    "push": ChannelKind(PushConfig, PushChannel, attach=PushChannel.attach, sample={"contact": "mailto:a@b.example"}),
    "ntfy": ChannelKind(NtfyConfig, NtfyChannel, sample={"topic": "sample"}),
    "notice": ChannelKind(NoticeConfig, NoticeChannel, sample={"urls": ("json://notice.example",)}),
}
"""All kinds of channel by name."""

BUILT_IN = "push"  # the name of the channel to browsers where the file has none of its kind


@dataclass(frozen=True)
class Channels:
    """The open channels of one process."""

    by_name: Mapping[str, Channel] = field(default_factory=dict)
    configs: Mapping[str, ChannelConfig] = field(default_factory=dict)
    built_in: Channel | None = None
    """The channel to browsers that needs no file. It sends the cards of items whose rules name no channel."""
    notices: Background = field(default_factory=lambda: Background("notices"))
    """Notices to people about their accounts, which are sent beside requests."""

    def find(self, name: str) -> Channel | None:
        return self.by_name.get(name)

    def list_settings(self) -> list[tuple[str, Channel, tuple[Setting, ...]]]:
        """Return each channel by name, with the fields of its configuration."""
        configs = self.configs
        return [
            (name, channel, describe_settings(configs[name]) if name in configs else ())
            for name, channel in sorted(self.by_name.items())
        ]

    def attach(self, parts: Wiring) -> "Channels":
        """Give the parts of this process to the channels that need them, and the key of link codes to the parts."""
        parts.contacts.use_code_key(derive_code_key(self.configs.values()))
        for channel in self.by_name.values():
            row = KINDS.get(channel.kind)
            if row is not None and row.attach is not None:
                row.attach(channel, parts)
        return self

    async def aclose(self) -> None:
        """Send what is under way, and close all channels."""
        await self.notices.finish()
        for channel in self.by_name.values():
            await channel.aclose()


def derive_code_key(configs: Iterable[ChannelConfig]) -> bytes:
    """Return the key of link codes: every process that reads the channels file has it, and the store has not."""
    return sha256(canonical_json([_reveal(config.model_dump()) for config in configs], limited=False)).digest()


def _reveal(value: object) -> JsonValue:
    """Return a configuration with its secrets in plain text, as JSON."""
    if isinstance(value, dict):
        return {str(name): _reveal(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return sorted((_reveal(part) for part in value), key=str)
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def open_channels(settings: Settings) -> Channels:
    """Open the channels of the channels file; raises `InvalidChannels`."""
    export_proxy(settings.egress_proxy, settings.receivers)
    configs = read_channels(settings.channels, {kind: row.config for kind, row in KINDS.items()})
    opened = {config.name: KINDS[config.kind].open(config) for config in configs}
    built_in = None
    if BUILT_IN not in opened and not any(isinstance(config, PushConfig) for config in configs):
        built_in = opened[BUILT_IN] = PushChannel(
            PushConfig(name=BUILT_IN, kind="push", contact=_find_contact(settings))
        )
    return Channels(opened, {config.name: config for config in configs}, built_in)


def _find_contact(settings: Settings) -> str:
    """Return where push services reach the operator: the address of the desk, or one at a machine without https."""
    url = settings.public_url
    if url.startswith("https://") and url.isascii():
        return url
    host = urlsplit(url).hostname or "localhost"
    return f"mailto:sayso@{host if host.isascii() else host.encode('idna').decode()}"
