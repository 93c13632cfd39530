"""The facts that conditions read as `run`, `who` and `subagents`, and the rule key `after`."""

from fnmatch import fnmatchcase
from typing import Any

from sayso.errors import InvalidInput
from sayso.policy.provenance.events import PolicyEvent
from sayso.policy.provenance.prices import Prices, compute_cost, count_usage
from sayso.records.suspensions import Progress
from sayso.records.tool_names import find_alike


def describe_provenance(event: PolicyEvent, prices: Prices) -> dict[str, Any]:
    """Return the values of `run`, `who` and `subagents`, without those that are unknown."""
    facts: dict[str, Any] = {"run": _describe_run(event, prices), "who": _describe_who(event)}
    if event.subagent_name is not None:
        facts["subagents"] = [name for name in event.subagent_name.split("/") if name]
    return facts


def check_after(patterns: tuple[str, ...], progress: Progress | None, *, loosely: bool) -> bool:
    """Return whether one of the tools ran before in the run; raises `InvalidInput` while that is unknown.

    With `loosely`, a name that only looks like one in the rule counts too.
    """
    tools = progress.tools if progress is not None else None
    if tools is None:
        raise InvalidInput("it is unknown which tools ran before in this run")
    if any(fnmatchcase(name, pattern) for name in tools for pattern in patterns):
        return True
    return loosely and any(find_alike(frozenset(patterns), name) for name in tools)


def _describe_run(event: PolicyEvent, prices: Prices) -> dict[str, Any]:
    facts: dict[str, Any] = {"started_by": event.started_by, "tenant": event.tenant, "environment": event.environment}
    progress = event.progress
    if progress is not None and progress.tools is not None:
        facts["tools"] = list(progress.tools)
    if progress is not None and progress.usage is not None:
        facts |= count_usage(progress.usage) | {"cost": compute_cost(progress.usage, prices)}
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _describe_who(event: PolicyEvent) -> dict[str, Any]:
    facts: dict[str, Any] = {"key": event.key}
    if (who := event.who) is not None:
        facts |= {"owner": who.owner, "person": who.person, "issuer": who.issuer}
        facts["groups"] = list(who.groups) if who.owner is not None else None
    return {name: value for name, value in facts.items() if value not in (None, "")}
