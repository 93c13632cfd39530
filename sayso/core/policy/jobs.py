"""Deferred conditions as jobs of JSON, and their evaluation in the process that does them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.budgets import Job, Verdict
from sayso.core.policy.conditions import ConditionError, Facts, compile_condition
from sayso.core.policy.functions.names import Names


def write_job(job: Job) -> JsonObject:
    """Return the job as JSON."""
    return {"facts": job.facts, "whens": [*job.whens]}


def judge_job(job: Mapping[str, Any]) -> JsonObject:
    """Return the verdicts on the conditions of a job as JSON, at any cost."""
    described = job["facts"]
    now = {} if described["now"] is None else {"now": datetime.fromisoformat(described["now"])}
    lists = {name: tuple(entries) for name, entries in described["lists"].items()}
    provenance: Mapping[str, object] = described["provenance"]
    facts = Facts({**described["values"], **now}, Names(lists, described["constants"]), lambda: provenance)
    return {"verdicts": [_judge(when, facts) for when in job["whens"]]}


def read_verdicts(answer: Mapping[str, Any]) -> Sequence[Verdict]:
    """Return the verdicts that `judge_job` returned as JSON."""
    return [Verdict(holds, fault, computed) for holds, fault, computed in answer["verdicts"]]


def _judge(when: str, facts: Facts) -> list[Any]:
    condition = compile_condition(when)
    try:
        holds, fault = condition.evaluate(facts), ""
    except ConditionError as error:
        holds, fault = None, error.problem
    return [holds, fault, facts.computing.list_computed(condition.reading)]
