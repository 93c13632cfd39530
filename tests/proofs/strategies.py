"""Strategies of the state machine: items, terms, actors and faults."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from redis.asyncio import Redis

from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Answer, Doubt, ItemDraft, ItemKind, ItemTool
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Intent
from sayso.core.records.terms import EscalationStep, Fallback, Quorum, RuleTerms, read_undo_s
from sayso.core.records.tools import ToolCall, ToolDefinition, ToolResult
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.permits import put_in_doubt
from service.core.store.suspensions.saving import Saved
from service.core.store.tenants import Connections
from tests.proofs.faulty_stores import FAULTS
from tests.proofs.model import execution
from tests.proofs.model.records import ItemModel, SuspensionModel
from tests.sayso.rule_builders import policy, rule
from tests.sayso.samples import T0

LEASE_MS = 4_000
MAX_RUNS = 3
MIN_EVENTS_TO_CANCEL = 9
"""The number of events from which a run may be cancelled; earlier, most runs would end before anything happened."""

REVIEWERS = ("ada", "ada", "bob", "bob", "bot")
"""`bot` owns every run and may not decide."""

WORKERS = ("w1", "w2")
STATE = seal_state(b'{"messages": []}')
RAN = (Event(type=EventType.TOOL_COMPLETED, data={"tool_name": "refund"}),)
REFUND = ToolDefinition(name="refund", description="Pay back.", parameters={"type": "object"})
GUARDED_AMOUNT = 9
"""An amount that another rule asks about."""

POLICY = policy(
    rule(
        "guarded", "request_approval", when=f"args.amount == {GUARDED_AMOUNT}", terms={"timeout_s": 7, "start_by_s": 60}
    )
)
RESULT = ToolResult(call_id="call_0", tool_name="refund", success=True, output="done")

ASKS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([ItemKind.APPROVAL, ItemKind.APPROVAL, ItemKind.INPUT]),
        "timeout_s": st.sampled_from([5, 9, 9, 0]),
        "undo": st.sampled_from([None, None, "2s", "10s"]),
        "quorum": st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 2)]),
        "reviewers": st.sampled_from([(), (), ("ada",), ("ada", "bob")]),
        "fallback": st.sampled_from(["deny", "approve", "approve", "fail", "escalate"]),
        "start_by_s": st.sampled_from([3, 60, 60]),
        "remind_after_s": st.sampled_from([(), (1, 3)]),
        "escalate": st.sampled_from([(), (2,), (3, 20)]),
        "extend_by_s": st.sampled_from([0, 4, 4]),
        "idempotent": st.booleans(),
    }
)
BATCHES = st.lists(ASKS, min_size=1, max_size=2)
PLACES = st.integers(0, 11)
LATE = st.sampled_from([False] * 9 + [True])
FAULT = st.sampled_from([None, None, None, None, *FAULTS])


@dataclass
class Environment:
    """The event loop and connections, shared by all examples."""

    loop: asyncio.Runner
    redis: Redis
    connections: Connections


@dataclass
class Tracked:
    """One suspension: its id, its model, and the digests of its items under each of their terms."""

    id: str
    run_id: str
    suspension: SuspensionModel
    known: Saved | None = None
    """The record that its driver saved last."""

    digests: dict[tuple[int, int], str] = field(default_factory=dict)


def build_draft(place: int, drawn: dict[str, Any]) -> ItemDraft:
    given = drawn["kind"] is ItemKind.INPUT
    steps = [EscalationStep(after_s=after_s, reviewers=("bob", f"boss-{after_s}")) for after_s in drawn["escalate"]]
    fallback = "value" if given and drawn["fallback"] == "approve" else drawn["fallback"]
    if fallback == "escalate" and not steps:
        fallback = "deny"
    return ItemDraft(
        kind=drawn["kind"],
        call_id=f"call_{place}",
        index=place,
        tool=ItemTool(name="refund", args={"amount": 1}, definition=REFUND.digest, idempotent=drawn["idempotent"]),
        allowed=(Answer.VALUE, Answer.DENY) if given else (Answer.APPROVE, Answer.EDIT, Answer.DENY),
        target_arg="amount" if given else None,
        terms=RuleTerms(
            timeout_s=drawn["timeout_s"],
            extend_by_s=drawn["extend_by_s"],
            start_by_s=drawn["start_by_s"],
            quorum=Quorum(approve=drawn["quorum"][0], deny=drawn["quorum"][1]),
            reviewers=drawn["reviewers"],
            undo=drawn["undo"],
            remind_after_s=drawn["remind_after_s"],
            escalate=tuple(steps),
            unattended_approval=fallback == "approve",
            fallback=Fallback.model_validate({"action": fallback, **({"value": 7} if fallback == "value" else {})}),
        ),
    )


def build_item(draft: ItemDraft, now: int) -> ItemModel:
    terms = draft.terms
    return ItemModel(
        kind="doubt" if draft.doubt else str(draft.kind),
        deadline=now + terms.timeout_s * 1000,
        created=now,
        quorum=(terms.quorum.approve, terms.quorum.deny),
        undo_ms=read_undo_s(terms.undo) * 1000,
        reviewers=terms.reviewers,
        fallback=str(terms.fallback.action),
        start_by_ms=terms.start_by_s * 1000,
        remind=[now + after_s * 1000 for after_s in terms.remind_after_s],
        steps=[(now + step.after_s * 1000, step.reviewers) for step in terms.escalate],
        extend_until=now + (terms.timeout_s + terms.extend_by_s) * 1000 if terms.extend_by_s else 0,
        idempotent=draft.tool.idempotent,
        doubt=(draft.doubt.idempotency_key, draft.doubt.holder) if draft.doubt else None,
    )


def build_intents(tracked: Tracked, items: list[ItemModel], fence: Fence) -> tuple[Intent, ...]:
    places = [place for place, item in enumerate(tracked.suspension.items) if any(item is one for one in items)]
    return tuple(
        Intent(
            item_id=f"i{place + 1}" if place != execution.ALLOWED else None,
            call_id=f"call_{place}",
            index=place,
            tool="refund",
            idempotency_key=f"{tracked.id}:{place}",
            idempotent=False,
            attempt=fence.attempt,
            holder=fence.holder,
            begun_at_ms=0,
        )
        for place in places or [execution.ALLOWED]
    )


def build_doubt_drafts(tracked: Tracked) -> list[ItemDraft]:
    """Return the items about unfinished calls of a run."""
    return [
        put_in_doubt(
            ToolCall(call_id=f"call_{place}", index=place, name="refund", args={"amount": 1}),
            REFUND.digest,
            Doubt(
                begun_at_ms=T0,
                holder=str(tracked.suspension.holder),
                attempt=1,
                idempotency_key=f"{tracked.id}:{place}",
            ),
        )
        for place in sorted(tracked.suspension.journal)
    ]
