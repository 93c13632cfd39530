"""The event that rules judge, from the record of its run."""

from typing import Any

from sayso.policy.events import PolicyEvent
from sayso.records.suspensions import Progress, RunRef


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
