"""List every dialect: what reads it, and what it is called on pages."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from sayso.formats.external_events import Piece
from sayso.records.decisions import JsonObject
from sayso.timeline import afk, autogen, parsimony, sayso, tool_responses, trpc_agent_go


class Dialect(StrEnum):
    """In which words a source tells of a run."""

    SAYSO = "sayso"
    AFK = "afk"
    AUTOGEN = "autogen"
    PARSIMONY = "parsimony"
    TOOL_RESPONSES = "tool_responses"
    TRPC_AGENT_GO = "trpc_agent_go"


class Reader(NamedTuple):
    """How a dialect is read; reading takes any JSON object and never fails."""

    label: str
    read: Callable[[JsonObject], tuple[Piece, ...]]


DIALECTS: dict[Dialect, Reader] = {
    Dialect.SAYSO: Reader("the agent", sayso.read),
    Dialect.AFK: Reader("AFK", afk.read),
    Dialect.AUTOGEN: Reader("AutoGen", autogen.read),
    Dialect.PARSIMONY: Reader("parsimony-agents", parsimony.read),
    Dialect.TOOL_RESPONSES: Reader("the chat", tool_responses.read),
    Dialect.TRPC_AGENT_GO: Reader("trpc-agent-go", trpc_agent_go.read),
}
