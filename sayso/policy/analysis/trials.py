"""A call to try on rules, as a person writes it. Nothing runs."""

from pydantic import Field

from sayso.calendars.windows import Moment, find_start_ms
from sayso.canonical_json import JsonObject
from sayso.policy.engine import PolicyEvent
from sayso.records.base import Immutable

MAX_NAME_CHARS = 200


class TrialCall(Immutable):
    """A call and the facts that rules read; `subagent` is "" for the agent itself and None when unknown."""

    tool: str = Field(min_length=1, max_length=MAX_NAME_CHARS, examples=["refund"])
    args: JsonObject = Field(default_factory=dict)
    agent: str = Field(default="", max_length=MAX_NAME_CHARS)
    subagent: str | None = Field(default=None, max_length=MAX_NAME_CHARS)
    step: int = Field(default=1, ge=1, le=999_999)
    context: JsonObject = Field(default_factory=dict, description="Facts about the run.")
    claimed: JsonObject = Field(default_factory=dict, description="What the agent says about the run.")
    at: Moment | None = Field(default=None, description="When the agent asks, such as 2026-12-24T18:00Z; now if null.")

    def as_event(self, now_ms: int) -> PolicyEvent:
        """Return the call as the rules see it."""
        return PolicyEvent(
            run_id="run_trial",
            step=self.step,
            agent=self.agent,
            tool_name=self.tool,
            tool_args=self.args,
            subagent_name=self.subagent,
            context=self.context,
            claimed=self.claimed,
            at_ms=find_start_ms(self.at) if self.at is not None else now_ms,
        )
