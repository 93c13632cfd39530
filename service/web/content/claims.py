"""Gather what the agent says of itself, so that pages show it apart from what Sayso knows."""

from dataclasses import dataclass

from sayso.canonical_json import JsonObject
from sayso.records.suspensions import SuspensionRecord
from sayso.records.tool_calls import ToolDefinition


@dataclass(frozen=True)
class Claims:
    """Words of the agent: the run's title, the tool's description, the context it sent, and what its model said."""

    title: str
    description: str
    context: JsonObject
    words: str

    def __bool__(self) -> bool:
        """Return whether the agent said anything."""
        return bool(self.title or self.description or self.context or self.words)


def find_claims(record: SuspensionRecord, definition: ToolDefinition | None, words: str) -> Claims:
    """Return what the agent says; with `poll` it describes its tool itself, else a worker has registered the tool."""
    own = definition if record.resume.mode == "poll" else None
    description = own.description if own is not None else ""
    return Claims(record.run.title, description, record.run.claimed, words)
