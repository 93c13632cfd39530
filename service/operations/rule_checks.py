"""Check rules against what this Sayso knows: its reviewers and the tools of its registered agents."""

import structlog
from pydantic import ValidationError

from sayso.errors import SaysoError
from sayso.policy.findings import Known, find_findings
from sayso.runner.agents import AgentManifest
from service.wiring import Wiring

log = structlog.get_logger()


async def find_known(wiring: Wiring) -> Known:
    """Return the reviewers and the registered agents' tools; a manifest that cannot be read is left out."""
    reviewers = {one.name: one.active for one in await wiring.reviewers.list_all()}
    tools = {}
    for name, raw in (await wiring.runs.agents()).items():
        try:
            tools[name] = AgentManifest.model_validate_json(raw).tools
        except ValidationError as error:
            log.warning("manifest_unreadable", agent=name, faults=error.error_count())
    return Known(reviewers, tools)


async def find_warnings(wiring: Wiring) -> list[str]:
    """Return all that cannot work in the rules in force."""
    return find_findings(wiring.rulebook.refresh(), await find_known(wiring))


async def log_warnings(wiring: Wiring) -> None:
    """Log all that cannot work in the rules in force; a store that cannot be asked is told as that."""
    try:
        for told in await find_warnings(wiring):
            log.warning("rules_doubtful", told=told)
    except SaysoError as error:
        log.warning("rules_not_checked", why=error.message)
