"""Known names: of agents and tools, for freezes, where a misspelt one is refused, and for checks of the rules."""

import difflib
from collections import Counter
from dataclasses import dataclass

import structlog
from pydantic import ValidationError

from sayso.core.clock import now_ms
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.records.decisions import Actor
from sayso.core.records.freezes import ALL, Freeze
from sayso.core.records.suspensions import Status
from sayso.errors import SaysoError, UnknownName
from sayso.runner.agents import AgentManifest
from service.core.auth.api_keys import LATEST_MS
from service.core.outgoing.assessors import assessors_of
from service.core.store.runs.runs import Run
from service.core.store.suspensions.reading import split_readable
from service.core.wiring import Wiring

MOST_NEAR = 5
MOST_COUNTED = 1000
_RECENT = 200
_NEAR = 0.6
_GLOB = frozenset("*?[")


@dataclass(frozen=True)
class Held:
    """What freezes would stop, by scope: items that wait, and decided calls. `cut` means that there are more."""

    waiting: Counter[str]
    starting: Counter[str]
    cut: bool


async def count_held(parts: Wiring) -> Held:
    """Count what each freeze would stop, in the unfinished suspensions that are due first."""
    ids = await parts.schedule.due(LATEST_MS, MOST_COUNTED)
    records, _ = split_readable(await parts.desk.suspensions.read_page(ids))
    held = Held(Counter(), Counter(), len(ids) == MOST_COUNTED)
    for record in records:
        agent = f"agent:{record.run.agent}"
        for item in record.items:
            if item.outcome is None:
                held.waiting.update((ALL, agent, f"tool:{item.tool.name}"))
            elif item.outcome.may_run and item.permit is None:
                held.starting.update((ALL, agent, f"tool:{item.tool.name}"))
        if not record.items and record.status is Status.DECIDED:  # a run that begins is one call without a tool
            held.starting.update((ALL, agent))
    return held


async def freeze_known(parts: Wiring, scope: str, reason: str, by: Actor, *, confirmed: bool) -> Freeze:
    """Freeze a scope; raises `UnknownName` with similar names for an unknown one, unless it is confirmed."""
    if not confirmed and "*" not in scope:  # `Freezes.freeze` refuses patterns
        await check_known(parts, scope)
    return await parts.freezes.freeze(scope, reason, by)


async def list_known(parts: Wiring, kind: str) -> list[str]:
    """Return the names of all known agents or of all known tools."""
    agents = await parts.runs.agents()
    conditions = [rule.condition for rule in parts.rulebook.refresh().rules]
    if kind == "agent":
        named = {name for condition in conditions for name in (condition.agent, *(condition.agents or ())) if name}
        names = {*agents, *(name for name in named if not _GLOB.intersection(name))}
        names |= {key.name for key in await parts.api_keys.list_all() if key.kind == "agent"}
        names |= {run.agent for run in await parts.runs.list_runs(limit=_RECENT) if isinstance(run, Run)}
        return sorted(names)
    names = {tool.name for manifest in agents.values() for tool in AgentManifest.model_validate_json(manifest).tools}
    names |= {condition.tool_name for condition in conditions if condition.tool_name}
    ids = [*await parts.runs.inbox(limit=_RECENT), *await parts.runs.decided(limit=_RECENT)]
    for record in await parts.desk.suspensions.read_many(list(dict.fromkeys(ids))):
        names |= {name for item in record.items for name in (item.tool.name, *record.waits_for)}
    return sorted(names)


async def check_known(parts: Wiring, scope: str) -> None:
    """Raise `UnknownName` with similar names for the scope of an unknown tool or agent."""
    kind, _, name = scope.partition(":")
    known = await list_known(parts, kind) if scope != ALL else []
    if scope == ALL or name in known:
        return
    by_name = {entry.casefold(): entry for entry in known}
    near = [by_name[match] for match in difflib.get_close_matches(name.casefold(), list(by_name), MOST_NEAR, _NEAR)]
    words = f"Near it: {', '.join(near)}." if near else "No name is near it."
    raise UnknownName(
        f"No {kind} {name!r} was seen here, so this freeze would stop nothing. {words} "
        "Correct the name, or confirm that you mean it.",
        scope=f"{kind}:{name}",
        near=near,
    )


log = structlog.get_logger()


async def find_known(wiring: Wiring) -> Known:
    """Return the reviewers, the groups, the registered agents' tools, the time and the assessors."""
    reviewers = {person.name: person.active for person in await wiring.reviewers.list_all()}
    tools = {name: manifest.tools for name, manifest in (await read_manifests(wiring)).items()}
    groups = {group.name: group.members for group in await wiring.groups.list_all()}
    return Known(reviewers, tools, groups, now_ms(), assessors_of(wiring.settings.assessors).assessors.keys())


async def read_manifests(wiring: Wiring) -> dict[str, AgentManifest]:
    """Return the manifests of registered agents by name, without unreadable ones."""
    manifests = {}
    for name, raw in (await wiring.runs.agents()).items():
        try:
            manifests[name] = AgentManifest.model_validate_json(raw)
        except ValidationError as error:
            log.warning("manifest_unreadable", agent=name, faults=error.error_count())
    return manifests


async def find_warnings(wiring: Wiring) -> list[str]:
    """Return a warning for each rule in force that cannot work."""
    return find_findings(wiring.rulebook.refresh(), await find_known(wiring))


async def log_warnings(wiring: Wiring) -> None:
    """Log the warnings about the rules in force, or why they were not checked."""
    try:
        for message in await find_warnings(wiring):
            log.warning("rules_doubtful", message=message)
    except SaysoError as error:
        log.warning("rules_not_checked", why=error.message)
