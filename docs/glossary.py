"""Write `docs/glossary.md` from the code: each word with the promise of what carries it.

Run `python -m docs.glossary` after a docstring has changed; a house test compares.
"""

import inspect
from pathlib import Path

from sayso.client import permits as leaves
from sayso.policy import engine as policies
from sayso.policy import rules
from sayso.records import decisions, events, suspensions, terms, tool_calls
from sayso.records import items as requests
from sayso.records import run_state as states
from sayso.runner import agents
from sayso.transitions import execution, table
from service.desk import desk
from service.store import keys
from service.store.connection import watch
from service.store.runs import runs
from service.store.suspensions import commits, schedule
from workers import resumers

PAGE = Path(__file__).with_name("glossary.md")

WORDS: dict[str, object] = {
    "actor": decisions.Actor,
    "schedule": schedule.Schedule,
    "agent": agents.Agent,
    "ask": requests.ItemDraft,
    "binding": requests.Binding,
    "commit": commits.Commit,
    "decision": decisions.Decision,
    "desk": desk,
    "event": events.Event,
    "fallback": terms.Fallback,
    "fence": execution.Fence,
    "idempotency key": commits.Idempotency,
    "intent": suspensions.Intent,
    "item": requests.Item,
    "lease": suspensions.Lease,
    "leave": leaves.RedeemedPermit,
    "outcome": decisions.Outcome,
    "permit": decisions.Permit,
    "policy": policies.Policy,
    "policy decision": policies.PolicyDecision,
    "policy event": policies.PolicyEvent,
    "quorum": terms.Quorum,
    "receipt": suspensions.Receipt,
    "report": decisions.Report,
    "resumer": resumers,
    "rule": rules.PolicyRule,
    "run": runs.Run,
    "run status": suspensions.RunStatus,
    "sealed state": states.SealedState,
    "status": suspensions.Status,
    "step": table.Step,
    "suspension": suspensions.SuspensionRecord,
    "tenant": keys.TenantKeys,
    "terms": terms.Terms,
    "tool call": tool_calls.ToolCall,
    "tool definition": tool_calls.ToolDefinition,
    "tool result": tool_calls.ToolResult,
    "trail entry": events.TrailEntry,
    "verdict": decisions.Verdict,
    "watch": watch.Watch,
}


def write_glossary() -> str:
    """Return the page."""
    rows = [f"| {word} | {_promise(thing)} | `{_place(thing)}` |" for word, thing in sorted(WORDS.items())]
    lines = [
        "# Glossary",
        "",
        "Every word of Sayso, with the promise of the code that carries it. Written by `python -m docs.glossary`.",
        "",
        "| word | meaning | where |",
        "| --- | --- | --- |",
        *rows,
        "",
    ]
    return "\n".join(lines)


def _promise(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _place(thing: object) -> str:
    if inspect.ismodule(thing):
        return thing.__name__
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__name__', '')}"


if __name__ == "__main__":
    PAGE.write_text(write_glossary())
