"""A run's audit trail, limited to the size of a page, and typed reads of events of any version."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from sayso.core.records.events import TrailEntry
from sayso.core.sentences.deadlines import describe_clock
from sayso.core.text.language import _
from service.core.store.runs.runs import Runs

_NO_NAMES: Mapping[str, str] = {}


class Facts:
    """An event's data; a missing or malformed value reads as empty. `names` maps items to their tools."""

    def __init__(self, data: Mapping[str, Any], names: Mapping[str, str] = _NO_NAMES) -> None:
        self._data = data
        self._names = names

    def text(self, key: str, default: str = "") -> str:
        value = self._data.get(key)
        return str(value) if isinstance(value, str | int | float) and value != "" else default

    def flag(self, key: str) -> bool:
        return self._data.get(key) is True

    def texts(self, key: str) -> list[str]:
        value = self._data.get(key)
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

    def objects(self, key: str) -> list["Facts"]:
        value = self._data.get(key)
        return [Facts(row, self._names) for row in value if isinstance(row, dict)] if isinstance(value, list) else []

    def object(self, key: str) -> "Facts":
        value = self._data.get(key)
        return Facts(value if isinstance(value, dict) else {}, self._names)

    def value(self, key: str) -> JsonValue:
        value: JsonValue = self._data.get(key)
        return value

    def number(self, key: str) -> int:
        value = self._data.get(key)
        return value if isinstance(value, int) else 0

    def clock(self, key: str) -> str:
        return describe_clock(self.number(key)) if self.number(key) else _("an unknown time")

    def latency(self) -> str:
        """Return the end of the sentence `X ran …`; empty if the latency is unknown."""
        latency = self.value("latency_ms")
        return _(" in %(latency)s ms", latency=f"{latency:.0f}") if isinstance(latency, int | float) else ""

    @property
    def actor(self) -> str:
        return self.object("by").text("id", _("Somebody"))

    @property
    def item(self) -> str:
        """The tool of the event's item if the trail names it, else the item's id."""
        item_id = self.text("item_id", _("an item"))
        return self._names.get(f"{self.text('suspension_id')}/{item_id}", item_id)


_BATCH = 1000
MAX_ENTRIES = 5000


async def read_trail(runs: Runs, run_id: str) -> list[TrailEntry]:
    """Return the run's events in order, up to `MAX_ENTRIES`."""
    entries: list[TrailEntry] = []
    while len(entries) < MAX_ENTRIES:
        more = await runs.trail(run_id, after=len(entries), limit=_BATCH)
        entries += more
        if len(more) < _BATCH:
            break
    return entries
