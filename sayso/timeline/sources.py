"""The source formats of external events, each with its reader and its label on pages."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.timeline import afk, autogen, parsimony, tool_responses, trpc_agent_go
from sayso.timeline.external_events import Part


class SourceFormat(StrEnum):
    """The format of the events of a source."""

    SAYSO = "sayso"
    AFK = "afk"
    AUTOGEN = "autogen"
    PARSIMONY = "parsimony"
    TOOL_RESPONSES = "tool_responses"
    TRPC_AGENT_GO = "trpc_agent_go"


class Reader(NamedTuple):
    """How to read and name a format. Reading accepts any JSON object and never fails."""

    label: str
    read: Callable[[JsonObject], tuple[Part, ...]]


SOURCE_FORMATS: dict[SourceFormat, Reader] = {
    SourceFormat.SAYSO: Reader("the agent", partial(afk.read_with, afk.SAYSO_READERS)),
    SourceFormat.AFK: Reader("AFK", afk.read),
    SourceFormat.AUTOGEN: Reader("AutoGen", autogen.read),
    SourceFormat.PARSIMONY: Reader("parsimony-agents", parsimony.read),
    SourceFormat.TOOL_RESPONSES: Reader("the chat", tool_responses.read),
    SourceFormat.TRPC_AGENT_GO: Reader("trpc-agent-go", trpc_agent_go.read),
}
