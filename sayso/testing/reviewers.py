"""A reviewer for tests: they decide as told beforehand, or here and now."""

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput

if TYPE_CHECKING:
    from sayso.testing.desk import InProcessDesk


@dataclass
class _Order:
    """What a reviewer was told to do with calls of some tools."""

    tools: str
    action: str
    given: JsonObject


class FakeReviewer:
    """A person who decides as told beforehand, or here and now; calls nobody told them about they leave waiting."""

    def __init__(self, desk: "InProcessDesk", name: str) -> None:
        self.name = name
        self._desk = desk
        self._orders: list[_Order] = []

    def approves(self, tools: str = "*", args: JsonObject | None = None) -> None:
        """Approve calls of these tools from now on, with other arguments if they are given."""
        self._orders.insert(0, _Order(tools, "approve", {"args": args} if args is not None else {}))

    def denies(self, tools: str = "*", message: str | None = None) -> None:
        """Deny calls of these tools from now on."""
        self._orders.insert(0, _Order(tools, "deny", {"message": message}))

    def answers(self, value: JsonValue, tools: str = "*") -> None:
        """Give this value to calls of these tools that ask for one, from now on."""
        self._orders.insert(0, _Order(tools, "value", {"value": value}))

    def decide(self, action: str = "approve", place: int = 0, **given: JsonValue) -> None:
        """Decide what waits at this place here and now: `approve` (with `args`), `deny` (`message`), `value`."""
        waiting = self._desk.waiting
        if place >= len(waiting):
            raise InvalidInput(f"{len(waiting)} calls wait, so there is none at place {place} to decide.")
        record, item = waiting[place]
        self._desk.decide(record, item, action, given, self.name)

    def look(self) -> None:
        """Decide all that waits and that there are orders for."""
        for record, item in self._desk.waiting:
            order = next((one for one in self._orders if fnmatch.fnmatchcase(item.tool.name, one.tools)), None)
            if order is not None:
                self._desk.decide(record, item, order.action, order.given, self.name)
