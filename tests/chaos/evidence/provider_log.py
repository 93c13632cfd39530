"""The provider's evidence: every card it accepted, every press of a button, and the answers to the presses."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

FILE = "provider.jsonl"
CHANNEL = "chat"
"""The name of the channel in the experiment's channels file."""

What = Literal["sent", "updated", "left", "pressed", "replied", "answered", "refused"]


class ProviderLine(BaseModel):
    """One thing that happened at the provider.

    `sent` and `updated` are accepted cards, with the buttons that decide. `left` is a card that still had buttons when
    all others had lost them. `pressed` and `replied` come from people. `answered` has the key of the press or reply;
    `refused` is an answer that the provider did not accept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: What
    at_ms: int
    person: str
    suspension_id: str
    item_id: str
    message_id: int = 0
    buttons: tuple[str, ...] = ()
    text: str = ""
    key: str = ""
    action: str = ""

    @property
    def decision_id(self) -> str:
        """The id that a decision by this press or reply has in the trail."""
        return f"dec_{sha256(f'{self.person} {CHANNEL}:{self.key}'.encode()).hexdigest()[:32]}"


class ProviderLog:
    """Appends to the log during an experiment."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / FILE).open("a", encoding="utf-8")

    def write(self, line: ProviderLine) -> None:
        """Add one line."""
        self._file.write(line.model_dump_json(exclude_defaults=True) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_provider(folder: Path) -> Iterator[ProviderLine]:
    """Return all lines in order."""
    if (folder / FILE).exists():
        with (folder / FILE).open(encoding="utf-8") as lines:
            yield from map(ProviderLine.model_validate_json, lines)
