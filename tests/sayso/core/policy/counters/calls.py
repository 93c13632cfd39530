"""Calls of one agent at a desk in this process, whose rules remember them."""

from typing import Any

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, ActorKind
from sayso.testing import InProcessDesk
from sayso.wire.suspensions import SuspensionView

ADA = Actor(id="ada", kind=ActorKind.HUMAN)


class Calls:
    """Calls of one agent at a desk with these rules."""

    def __init__(self, rules: str, agent: str = "shop") -> None:
        self.desk = InProcessDesk(rules)
        self.agent = agent
        self.made = 0

    def ask(self, tool: str, **args: Any) -> SuspensionView:
        self.made += 1
        definition: JsonObject = {"parameters": {"type": "object"}}
        body: JsonObject = {"mode": "poll", "calls": [{"tool": tool, "args": args, "definition": definition}]}
        return self.desk.client(self.agent).suspend(body, key=f"key-{self.made}")

    def verdict(self, tool: str, **args: Any) -> str:
        """Return allowed, denied or asked."""
        (item,) = self.ask(tool, **args).items
        return str(item.outcome.verdict) if item.outcome is not None else "asked"

    def approve(self, tool: str, **args: Any) -> None:
        """Have a person approve a call, and run it."""
        asked = self.ask(tool, **args)
        record = self.desk.records[asked.id]
        self.desk.decide(record, record.items[0], "approve", {}, ADA)
        self.desk.client(self.agent).redeem(asked.id, asked.items[0].item_id, key=f"run-{self.made}")
