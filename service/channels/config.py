"""The channels file: the configured channels, with their secrets.

    channels:
      ops-slack:
        kind: slack
        bot_token: env:SLACK_BOT_TOKEN

A secret is written into the file, or as `env:NAME` for a variable of the environment. Every fault is reported with its
line; a program with a faulty file does not start.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from sayso.core.policy.files.yaml_documents import Document, read_document
from sayso.errors import InvalidInput

_URL = re.compile(r"([a-z][a-z0-9+.-]*://)(?:[^/@\s]*@)?([^/?#\s]*)\S*")
"""A URL; anything but its host may hold a secret."""

CHANNEL_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")

RESERVED_NAMES = frozenset({"aap", "api", "cli", "clock", "desk", "web", "webhook", "worker"})
"""Channels of the service itself, which the audit trail must not confuse with configured ones."""

HIDDEN = "set, hidden"  # the text in place of a secret


class InvalidChannels(InvalidInput):
    """The channels file is invalid; correct it and start again."""


class ChannelConfig(BaseModel):
    """Base class for the fields of one channel in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=f"^{CHANNEL_NAME.pattern}$")
    kind: str
    decide: bool = Field(default=True, description="Whether cards have buttons to decide, or only a link.")
    per_minute: int = Field(default=60, ge=1, le=6000, description="The most messages a minute to the provider.")


class Setting(NamedTuple):
    """A field of a channel as an operator sees it, without its secret."""

    name: str
    text: str


def describe_settings(config: ChannelConfig) -> tuple[Setting, ...]:
    """Return the fields of a channel that are set, with secrets hidden."""
    shown = ((name, _describe(getattr(config, name))) for name in type(config).model_fields)
    return tuple(Setting(name, text) for name, text in shown if text and name not in ("name", "kind"))


def _describe(value: object) -> str:
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, list | tuple):
        return ", ".join(dict.fromkeys(map(_describe, value)))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float | Path):
        return _URL.sub(r"\1\2", str(value))
    return "" if value is None else "set"


def read_channels(
    path: Path | None, kinds: Mapping[str, type[ChannelConfig]], environ: Mapping[str, str] = os.environ
) -> tuple[ChannelConfig, ...]:
    """Return the channels of a file, none without a file; raises `InvalidChannels` with all faults."""
    if path is None:
        return ()
    try:
        document = read_document(path.read_bytes(), path.name)
    except OSError as error:
        raise InvalidChannels(f"{path} cannot be read: {error.strerror}. Correct SAYSO_CHANNELS.") from error
    parsed = [_parse(document, name, row, kinds, environ) for name, row in _list_rows(document).items()]
    if document.problems:
        raise InvalidChannels("\n".join(map(str, sorted(document.problems))))
    return tuple(config for config in parsed if config is not None)


def _list_rows(document: Document) -> dict[str, Any]:
    content = document.content
    if document.problems or content is None:
        return {}
    rows = content.get("channels") if isinstance(content, dict) else None
    if not isinstance(rows, dict):
        document.report((), "the file must have one key, `channels`, with a mapping of names to channels")
        return {}
    for key in content:
        if key != "channels":
            document.report((key,), f"`{key}` is unknown; the file has only `channels`", at_key=True)
    return rows


def _parse(
    document: Document, name: str, row: Any, kinds: Mapping[str, type[ChannelConfig]], environ: Mapping[str, str]
) -> ChannelConfig | None:
    loc = ("channels", name)
    if not CHANNEL_NAME.fullmatch(name) or name in RESERVED_NAMES:
        document.report(loc, f"`{name}` cannot name a channel; use up to 40 of a-z, 0-9 and -", at_key=True)
        return None
    if not isinstance(row, dict) or row.get("kind") not in kinds:
        document.report(loc, f"channel {name} needs a kind: {', '.join(sorted(kinds))}", at_key=True)
        return None
    try:
        return kinds[row["kind"]].model_validate({**row, "name": name}, context={"environ": environ})
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            words = fault["msg"].removeprefix("Value error, ")
            field = ".".join(map(str, fault["loc"]))
            document.report((*loc, *fault["loc"]), f"channel {name}: {field}: {words}" if field else words)
        return None
