"""Check rules against the known reviewers, groups and the tools of registered agents."""

import structlog
from pydantic import ValidationError

from sayso.core.clock import now_ms
from sayso.core.policy.files.findings import Known, find_findings
from sayso.errors import SaysoError
from sayso.runner.agents import AgentManifest
from service.core.outgoing.assessors import assessors_of
from service.core.wiring import Wiring

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
