"""Calls that agents are about to make, and verdicts on them, in no agent's format."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput

SHELL = "Bash"
"""The name of each agent's shell at the desk, so that one rule is for all agents."""

Decision = Literal["allow", "deny", "ask", "defer", "none"]


class Verdict(NamedTuple):
    """The answer to a hook. With `none` the agent goes on as if it had no hook."""

    decision: Decision
    reason: str = ""
    args: JsonObject | None = None
    """The arguments to run with, if a reviewer changed them."""


@dataclass(frozen=True)
class HookCall:
    """A tool call that an agent is about to make.

    `native` are the arguments as the agent sent them, `place` those that the hook adds, and `note` what the agent says
    about the call: reviewers read it above the call, because the same call may have another note the next time.
    """

    agent: str
    event: str
    session: str
    call_id: str | None
    tool: str
    native: JsonObject
    place: JsonObject
    note: JsonObject
    takes_changes: bool = True
    """Whether the answer can have other arguments."""
    run: str | None = None
    """The agent's run, if it can end with the call and ask about it again once it is resumed."""

    def __post_init__(self) -> None:
        if hidden := self.place.keys() & self.native.keys():
            raise InvalidInput(f"{self.tool} has an argument {min(hidden)}, which the hook sets. Leave it out.")

    @property
    def args(self) -> JsonObject:
        """The arguments that rules and reviewers see."""
        return {name: value for name, value in self.native.items() if name not in self.note} | self.place

    def restore(self, approved: JsonObject) -> JsonObject | None:
        """Return approved arguments as the agent takes them, or None if they are its own.

        Raises `InvalidInput` if a reviewer changed what this hook cannot change.
        """
        if approved == self.args:
            return None
        if any(approved.get(name) != value for name, value in self.place.items()):
            raise InvalidInput(f"a reviewer changed where {self.tool} runs, and a hook cannot. Deny the call instead.")
        changed = {name: value for name, value in approved.items() if name not in self.place}
        if not self.takes_changes:
            raise InvalidInput(
                f"a reviewer approved it with other arguments. Call it with {to_json(changed).decode()}."
            )
        return changed | self.note
