"""Serve a sandbox's jobs, one a line, within its limits; `service.sandbox` starts it."""

import base64
import json
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.policy.files.reading import RulebookError, parse_rulebook
from sayso.core.policy.functions.lists import pick_file
from sayso.core.records.tools import ToolDefinition
from sayso.core.schemas.bounds import weigh
from sayso.errors import InvalidInput
from service.core.policy.evaluations import Fit, SuspendedFramework, find_problems, judge_job, pack_state
from service.core.policy.sandbox import READY, describe_refusal

_GRACE_S = 1.0
_MEGABYTE = 1024 * 1024


Work = Callable[[dict[str, Any]], JsonObject]  # does a job and returns its answer


def serve(memory_mb: int, features: Mapping[str, Work]) -> None:
    """Answer every job on standard input: those of the core, and those that features register by their kinds."""
    jobs = {**_JOBS, **features}
    mapped = Path("/proc/self/statm")
    if mapped.exists():
        limit = int(mapped.read_text().split()[0]) * resource.getpagesize() + memory_mb * _MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        job = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, job["limit_s"] + _GRACE_S)  # ends the process even in a busy loop
        try:
            answer = jobs[job["kind"]](job)
        except InvalidInput as error:
            answer = describe_refusal(error)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


def _fit(job: dict[str, Any]) -> JsonObject:
    weigh(job["schema"])
    return {"problems": list(find_problems(Fit(job["schema"], job["value"], job["name"], job["formats"])))}


def parse_job(job: dict[str, Any]) -> Policy:
    """Return the rules of a job."""
    return parse_rulebook(job["text"].encode(), file=job["file"], read_list=pick_file(job["lists"]))


def _check_rules(job: dict[str, Any]) -> JsonObject:
    try:
        policy = parse_job(job)
    except RulebookError as error:
        faults = [str(problem) for problem in error.problems]
        more = [f"and {len(faults) - job['most']} more"] if len(faults) > job["most"] else []
        return {"faults": [*faults[: job["most"]], *more]}
    warnings = find_findings(policy, Known(job["reviewers"], read_tools(job), job["groups"], job["now_ms"]))
    return {"rules": len(policy.rules), "version": policy.version, "warnings": list(warnings)}


def read_tools(job: dict[str, Any]) -> dict[str, list[ToolDefinition]]:
    """Return the tools of each agent that a job names."""
    return {name: [ToolDefinition.model_validate(tool) for tool in tools] for name, tools in job["tools"].items()}


def _pack_state(job: dict[str, Any]) -> JsonObject:
    sealed = pack_state(job["agent"], SuspendedFramework.model_validate(job["framework_run"]), job["most"])
    return {"ref": sealed.ref.model_dump(), "blob": base64.b64encode(sealed.blob).decode()}


_JOBS: dict[str, Work] = {"fit": _fit, "judge": judge_job, "rules": _check_rules, "state": _pack_state}
