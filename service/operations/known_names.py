"""Known names of agents and tools, from manifests, rules, keys and runs: a misspelt freeze is refused."""

import difflib

from sayso.errors import UnknownName
from sayso.records.decisions import Actor
from sayso.records.freezes import ALL, Freeze
from sayso.runner.agents import AgentManifest
from service.store.runs.runs import Run
from service.wiring import Wiring

MOST_NEAR = 5
_RECENT = 200
_NEAR = 0.6
_GLOB = frozenset("*?[")


async def freeze_known(parts: Wiring, scope: str, reason: str, by: Actor, *, confirmed: bool) -> Freeze:
    """Freeze a scope; raises `UnknownName` with similar names for an unknown one, unless it is confirmed."""
    kind, _, name = scope.partition(":")
    if scope != ALL and not confirmed and "*" not in name:  # `Freezes.freeze` refuses patterns
        await _check_known(parts, kind, name)
    return await parts.freezes.freeze(scope, reason, by)


async def list_known(parts: Wiring, kind: str) -> list[str]:
    """Return the names of all known agents or of all known tools."""
    agents, tools = await _find_registered(parts)
    rule_agents, rule_tools = _find_in_rules(parts)
    if kind == "agent":
        keys = await parts.api_keys.list_all()
        runs = await parts.runs.list_runs(limit=_RECENT)
        found = (
            agents
            | rule_agents
            | {key.name for key in keys if key.kind == "agent"}
            | {run.agent for run in runs if isinstance(run, Run)}
        )
    else:
        found = tools | rule_tools | await _find_asked(parts)
    return sorted(found)


async def _check_known(parts: Wiring, kind: str, name: str) -> None:
    known = await list_known(parts, kind)
    if name in known:
        return
    by_name = {one.casefold(): one for one in known}
    near = [by_name[one] for one in difflib.get_close_matches(name.casefold(), list(by_name), MOST_NEAR, _NEAR)]
    words = f"Near it: {', '.join(near)}." if near else "No name is near it."
    raise UnknownName(
        f"No {kind} {name!r} was seen here, so this freeze would stop nothing. {words} "
        "Correct the name, or confirm that you mean it.",
        scope=f"{kind}:{name}",
        near=near,
    )


async def _find_registered(parts: Wiring) -> tuple[set[str], set[str]]:
    agents = await parts.runs.agents()
    manifests = map(AgentManifest.model_validate_json, agents.values())
    return set(agents), {tool.name for manifest in manifests for tool in manifest.tools}


def _find_in_rules(parts: Wiring) -> tuple[set[str], set[str]]:
    conditions = [rule.condition for rule in parts.rulebook.refresh().rules]
    agents = {one.agent for one in conditions if one.agent and not _GLOB.intersection(one.agent)}
    return agents, {one.tool_name for one in conditions if one.tool_name}


async def _find_asked(parts: Wiring) -> set[str]:
    ids = [*await parts.runs.inbox(limit=_RECENT), *await parts.runs.decided(limit=_RECENT)]
    records = await parts.desk.suspensions.read_many(list(dict.fromkeys(ids)))
    return {name for record in records for item in record.items for name in (item.tool.name, *record.waits_for)}
