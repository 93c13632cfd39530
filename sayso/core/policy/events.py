"""The events that rules judge, the facts about a run that conditions read, and the prices of its model calls."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Self

from pydantic import Field

from sayso.core.policy.counters.readings import Reading
from sayso.core.policy.rules import SUBJECTS, EventType, Subject
from sayso.core.records.base import Immutable
from sayso.core.records.suspensions import ModelUsage, Progress, RunRef, Who
from sayso.core.records.tools import find_alike
from sayso.errors import InvalidInput

_UNIT = 1_000_000  # prices are per million tokens


class ModelPrice(Immutable):
    """The price of a million tokens of one model, in the currency of the file's author."""

    input: float = Field(ge=0, le=1_000_000)
    output: float = Field(ge=0, le=1_000_000)


Prices = Mapping[str, ModelPrice]
"""The prices by the name of a model, or by a pattern; an exact name has priority, then the first pattern."""


def compute_cost(usage: Sequence[ModelUsage], prices: Prices) -> float | None:
    """Return what the model calls cost; None if one of the models has no price."""
    cost = 0.0
    for use in usage:
        fitting = (each for pattern, each in prices.items() if use.model and fnmatchcase(use.model, pattern))
        price = prices[use.model] if use.model in prices else next(fitting, None)
        if price is None:
            return None
        cost += (use.input_tokens * price.input + use.output_tokens * price.output) / _UNIT
    return cost


class PolicyEvent(Immutable):
    """Something an agent is about to do, as the rules see it.

    Arguments and context are not validated: a value that is not JSON is asked about. `subagent_name` is "" for the
    agent itself and None when unknown. `context` is trusted; `claimed` comes from the agent and is not checked.
    `at_ms` is the store's time at which the agent asked; it is only read for rules that need it. `tenant` to `progress`
    say where the call comes from; None is unknown. `readings` holds what the counters of rules held when the call was
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
    readings: dict[str, Reading] = Field(default_factory=dict)
    definition: str | None = None

    @property
    def subject(self) -> Subject:
        return SUBJECTS[self.event_type]

    @cached_property
    def parts(self) -> dict[str, Any]:
        """What the keys of rules that remember have read of the event; shared with copies that differ in `readings`."""
        return {}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        if update is None or update.keys() != {"readings"}:
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


def describe_provenance(event: PolicyEvent, prices: Prices) -> dict[str, Any]:
    """Return the values of `run`, `who` and `subagents`, without those that are unknown."""
    run: dict[str, Any] = {name: getattr(event, name) for name in ("started_by", "tenant", "environment")}
    progress = event.progress
    if progress is not None and progress.tools is not None:
        run["tools"] = list(progress.tools)
    if progress is not None and progress.usage is not None:
        usage = progress.usage
        given, made = sum(use.input_tokens for use in usage), sum(use.output_tokens for use in usage)
        counts = [use.model_calls for use in usage if use.model_calls is not None]
        run |= {"tokens": given + made, "input_tokens": given, "output_tokens": made}
        run |= {"cost": compute_cost(usage, prices)}
        run["model_calls"] = sum(counts) if len(counts) == len(usage) else None
    people: dict[str, Any] = {"key": event.key}
    if (who := event.who) is not None:
        people |= {"owner": who.owner, "person": who.person, "issuer": who.issuer}
        people["groups"] = list(who.groups) if who.owner is not None else None
    parts = (("run", run), ("who", people))
    facts: dict[str, Any] = {
        part: {name: value for name, value in known.items() if value not in (None, "")} for part, known in parts
    }
    if event.subagent_name is not None:
        facts["subagents"] = [name for name in event.subagent_name.split("/") if name]
    return facts


def check_after(patterns: tuple[str, ...], progress: Progress | None, *, loosely: bool) -> bool:
    """Return whether one of the tools (`loosely`: one alike) ran before; raises `InvalidInput` while unknown."""
    tools = progress.tools if progress is not None else None
    if tools is None:
        raise InvalidInput("it is unknown which tools ran before in this run")
    if any(fnmatchcase(name, pattern) for name in tools for pattern in patterns):
        return True
    return loosely and any(find_alike(frozenset(patterns), name) for name in tools)
