"""A reviewer for tests."""

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.records.decisions import Actor, ActorKind

if TYPE_CHECKING:
    from sayso.testing.desk import InProcessDesk


@dataclass
class _Instruction:
    tools: str
    action: str
    given: JsonObject


class FakeReviewer:
    """A reviewer that follows instructions given in advance, or decides at once.

    The latest instruction whose pattern matches the tool's name applies. Other calls wait.
    """

    def __init__(self, desk: "InProcessDesk", name: str) -> None:
        self.name = name
        self.groups: tuple[str, ...] = ()
        """The reviewer's groups, for rules that name `group:NAME`."""

        self._desk = desk
        self._instructions: list[_Instruction] = []

    @property
    def actor(self) -> Actor:
        """The reviewer as the author of decisions."""
        return Actor(id=self.name, kind=ActorKind.HUMAN, groups=self.groups)

    def approves(self, tools: str = "*", args: JsonObject | None = None) -> None:
        """Approve calls of these tools from now on, with other arguments if `args` are given."""
        self._instructions.insert(0, _Instruction(tools, "approve", {"args": args} if args is not None else {}))

    def denies(self, tools: str = "*", message: str | None = None) -> None:
        """Deny calls of these tools from now on."""
        self._instructions.insert(0, _Instruction(tools, "deny", {"message": message}))

    def answers(self, value: JsonValue, tools: str = "*") -> None:
        """Give this value to calls of these tools that request one, from now on."""
        self._instructions.insert(0, _Instruction(tools, "value", {"value": value}))

    def decide(self, action: str = "approve", place: int = 0, **given: JsonValue) -> None:
        """Decide the open item at this place: `approve` (with `args`), `deny` (`message`) or `value` (`value`)."""
        waiting = self._desk.waiting
        if place >= len(waiting):
            raise InvalidInput(f"There is no open item at place {place}: {len(waiting)} wait.")
        record, item = waiting[place]
        self._desk.decide(record, item, action, given, self.actor)

    def review(self) -> None:
        """Decide all open items that an instruction matches."""
        for record, item in self._desk.waiting:
            matching = [one for one in self._instructions if fnmatch.fnmatchcase(item.tool.name, one.tools)]
            if matching:
                self._desk.decide(record, item, matching[0].action, matching[0].given, self.actor)
