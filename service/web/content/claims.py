"""An agent's statements about itself; pages show them apart from facts that Sayso has checked."""

from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition


@dataclass(frozen=True)
class Claims:
    """Unchecked statements: the run's title, the tool's description, the sent context, and the model's text."""

    title: str
    description: str
    context: JsonObject
    model_text: str

    def __bool__(self) -> bool:
        return bool(self.title or self.description or self.context or self.model_text)


def find_claims(record: SuspensionRecord, definition: ToolDefinition | None, model_text: str) -> Claims:
    """Return the agent's claims; with mode `poll` they include the tool's description, which no worker registered."""
    own = definition if record.resume.mode == "poll" else None
    description = own.description if own is not None else ""
    return Claims(record.run.title, description, record.run.claimed, model_text)
