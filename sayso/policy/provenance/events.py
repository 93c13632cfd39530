"""The events that rules judge, and what the record of a run says of them."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import Field

from sayso.policy.memory.readings import Reading
from sayso.policy.rules import SUBJECTS, EventType, Subject
from sayso.records.base import Immutable
from sayso.records.suspensions import Progress, RunRef, Who


class PolicyEvent(Immutable):
    """Something an agent is about to do, as the rules see it.

    Arguments and context are not validated: a value that is not JSON is asked about. `subagent_name` is "" for the
    agent itself and None when unknown. `context` is trusted; `claimed` comes from the agent and is not checked.
    `at_ms` is the store's time at which the agent asked; it is only read for rules that need it. `tenant` to `progress`
    say where the call comes from; None is unknown. `memory` holds what the counters of rules held when the call was
    judged, and the grants in force. `definition` is the digest of the tool's definition.
    """

    event_type: EventType = "tool_before_execute"
    run_id: str
    thread_id: str | None = None
    step: int = Field(default=0, ge=0)
    agent: str
    tool_name: str | None = None
    tool_args: dict[str, Any] = Field(default_factory=dict)
    subagent_name: str | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    claimed: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    at_ms: int | None = None
    tenant: str | None = None
    environment: str | None = None
    started_by: str | None = None
    key: str | None = None
    who: Who | None = None
    progress: Progress | None = None
    memory: dict[str, Reading] = Field(default_factory=dict)
    definition: str | None = None

    @property
    def subject(self) -> Subject:
        return SUBJECTS[self.event_type]

    @cached_property
    def parts(self) -> dict[str, Any]:
        """What the keys of rules that remember have read of the event; shared with copies that differ in `memory`."""
        return {}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some fields replaced. The new values are not validated."""
        copied = super().model_copy(update=update, deep=deep)
        if update is None or update.keys() != {"memory"}:
            vars(copied).pop("parts", None)
        return copied


def describe_origin(run: RunRef, progress: Progress | None) -> dict[str, Any]:
    """Return the fields of `PolicyEvent` that say where a call of the run comes from."""
    return {
        "tenant": run.tenant,
        "environment": run.environment or None,
        "started_by": run.owner,
        "key": run.owner if run.key_id is not None else None,
        "who": run.who,
        "progress": progress,
    }


def make_event(run: RunRef, step: int, progress: Progress | None = None, **call: Any) -> PolicyEvent:
    """Return the event of a run; `call` are the fields of one call, without them it holds the facts about the run."""
    return PolicyEvent(
        run_id=run.id,
        thread_id=run.thread_id,
        step=step,
        agent=run.agent,
        context=run.facts,
        claimed=run.claimed,
        **describe_origin(run, progress),
        **call,
    )
