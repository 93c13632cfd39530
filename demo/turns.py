"""Recorded model turns, and which of them a request replays.

The recordings are in `turns.jsonl`. `NOTICE.md` names their source and licence.
"""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from sayso.core.records.base import Immutable

RECORDINGS = Path(__file__).with_name("turns.jsonl")


class RecordedMessage(Immutable):
    """A message to the model."""

    role: str
    content: str


class RecordedTool(Immutable):
    """A tool offered to the model."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class RecordedCall(Immutable):
    """A call of the model."""

    name: str
    arguments: dict[str, JsonValue]


class Turn(Immutable):
    """A recorded turn: the request, the offered tools, and the calls of the response."""

    id: str
    messages: tuple[RecordedMessage, ...]
    tools: tuple[RecordedTool, ...]
    calls: tuple[RecordedCall, ...]

    @property
    def request(self) -> str:
        """The text of the user."""
        return next(message.content for message in self.messages if message.role == "user")

    def call_id(self, index: int) -> str:
        """Return the id of the call at `index`, which is the same in every replay."""
        return f"call_{self.id.rpartition('/')[2]}_{index}"


@lru_cache(maxsize=1)
def load_turns(path: Path = RECORDINGS) -> tuple[Turn, ...]:
    """Return the recorded turns in file order."""
    with path.open(encoding="utf-8") as lines:
        return tuple(Turn.model_validate_json(line) for line in lines)


def plan_turns(text: str, turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return the turns whose request is in `text`, in the order of the text."""
    places = ((text.find(turn.request), turn) for turn in turns)
    return tuple(turn for place, turn in sorted(places, key=lambda pair: pair[0]) if place >= 0)
