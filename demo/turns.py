"""Hold recorded model turns, and say which of them a request asks to be replayed.

The recordings lie in `turns.jsonl`; `NOTICE.md` says where they come from and under which licence.
"""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from sayso.records.base import Immutable

RECORDINGS = Path(__file__).with_name("turns.jsonl")


class RecordedMessage(Immutable):
    """What was said to the model."""

    role: str
    content: str


class RecordedTool(Immutable):
    """A tool the model was offered."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class RecordedCall(Immutable):
    """A call the model answered with."""

    name: str
    arguments: dict[str, JsonValue]


class Turn(Immutable):
    """One recorded turn: what was asked, with which tools, and the batch of calls that came."""

    id: str
    messages: tuple[RecordedMessage, ...]
    tools: tuple[RecordedTool, ...]
    calls: tuple[RecordedCall, ...]

    @property
    def request(self) -> str:
        """What the user asked for."""
        return next(message.content for message in self.messages if message.role == "user")

    def call_id(self, index: int) -> str:
        """The id under which the call at `index` is replayed, the same every time."""
        return f"call_{self.id.rpartition('/')[2]}_{index}"


@lru_cache(maxsize=1)
def load_turns(path: Path = RECORDINGS) -> tuple[Turn, ...]:
    """Return the recorded turns in the order of the file."""
    with path.open(encoding="utf-8") as lines:
        return tuple(Turn.model_validate_json(line) for line in lines)


def plan_turns(text: str, turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return those of `turns` whose request is contained in `text`, in the order they appear there."""
    found = ((text.find(turn.request), turn) for turn in turns)
    return tuple(turn for place, turn in sorted(found, key=lambda pair: pair[0]) if place >= 0)
