"""Write `docs/glossary.md` from the docstrings of the code that defines each term.

Run `python -m docs.glossary` after a docstring has changed; an architecture test compares.
"""

import inspect
from pathlib import Path

from sayso.client import permits
from sayso.core.policy import counters, engine, rules
from sayso.core.records import (
    decisions,
    events,
    freezes,
    items,
    judgements,
    permissions,
    run_state,
    suspensions,
    terms,
    tools,
)
from sayso.core.transitions import due, execution, legal
from sayso.features.permissions import learning
from sayso.runner import agents, batches, protocol, revalidation
from sayso.timeline import merging
from service.core.desk import desk
from service.core.store import directory, keys
from service.core.store.connection import commits as writes
from service.core.store.connection import pipeline, watch
from service.core.store.runs import erasures, external_events, runs
from service.core.store.suspensions import commits, schedule
from service.features import saved_views as views
from service.features.operate import diagnostics
from workers.resume import resumers

PAGE = Path(__file__).with_name("glossary.md")

TERMS: dict[str, object] = {
    "actor": decisions.Actor,
    "absence": directory.Absence,
    "agent": agents.Agent,
    "assessment": judgements.Assessment,
    "batch": batches.Batch,
    "binding": items.Binding,
    "change": suspensions.Change,
    "charge": judgements.Charge,
    "commit": writes.Commit,
    "contact": directory.Contact,
    "counters": counters,
    "decision": decisions.Decision,
    "desk": desk,
    "draft": items.ItemDraft,
    "erasure": decisions.Erasure,
    "event": events.Event,
    "external event": external_events.ExternalEvent,
    "fallback": terms.Fallback,
    "fence": execution.Fence,
    "finding": diagnostics.Finding,
    "framework": protocol.Framework,
    "freeze": freezes.Freeze,
    "grant": permissions.Grant,
    "group": directory.Group,
    "idempotency key": commits.Idempotency,
    "in doubt": items.Doubt,
    "intent": suspensions.Intent,
    "item": items.Item,
    "hand-over": execution.hand_over,
    "lease": suspensions.Lease,
    "lesson": learning.Lesson,
    "mandate": permissions.Mandate,
    "outcome": decisions.Outcome,
    "permit": decisions.Permit,
    "pipeline": pipeline,
    "policy": engine.Policy,
    "policy decision": engine.PolicyDecision,
    "policy event": engine.PolicyEvent,
    "quorum": terms.Quorum,
    "receipt": suspensions.Receipt,
    "redeemed permit": permits.RedeemedPermit,
    "report": decisions.Report,
    "resumer": resumers,
    "revalidation": revalidation.Revalidation,
    "revocations": freezes.Revocations,
    "rule": rules.PolicyRule,
    "run": runs.Run,
    "run status": suspensions.RunStatus,
    "saved view": views.SavedView,
    "schedule": schedule.Schedule,
    "sealed state": run_state.SealedState,
    "status": suspensions.Status,
    "suspension": suspensions.SuspensionRecord,
    "tenant": keys.TenantKeys,
    "terms": terms.Terms,
    "tick": due.tick,
    "timeline entry": merging.Entry,
    "tombstone": erasures.make_tombstone,
    "tool call": tools.ToolCall,
    "tool definition": tools.ToolDefinition,
    "tool result": tools.ToolResult,
    "trail event": events.TrailEntry,
    "transition": legal.Step,
    "verdict": decisions.Verdict,
    "watch": watch.Watch,
}


def write_glossary() -> str:
    """Return the page."""
    rows = [f"| {term} | {_meaning(thing)} | `{_place(thing)}` |" for term, thing in sorted(TERMS.items())]
    lines = [
        "# Glossary",
        "",
        "One word for one thing, in code, API, pages, command line and documentation.",
        "`python -m docs.glossary` writes this page from the code.",
        "",
        "| Term | Meaning | Defined by |",
        "| --- | --- | --- |",
        *rows,
        "",
    ]
    return "\n".join(lines)


def _meaning(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _place(thing: object) -> str:
    if inspect.ismodule(thing):
        return thing.__name__
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__name__', '')}"


if __name__ == "__main__":
    PAGE.write_text(write_glossary())
