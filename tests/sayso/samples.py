"""Builders of drafts, records and decisions for tests of transitions."""

from typing import Any

from sayso.core.records.decisions import Actor, ActorKind, Decision, DecisionAction
from sayso.core.records.items import Answer, ItemDraft, ItemKind, ItemTool
from sayso.core.records.suspensions import Change, Intent, RunRef, Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.transitions.deciding import suspend

T0 = 1_700_000_000_000
"""The time at which tests start, in ms."""


def person(name: str, *groups: str) -> Actor:
    """Return a reviewer in these groups."""
    return Actor(id=name, kind=ActorKind.HUMAN, groups=groups)


def ask(index: int = 0, *, kind: ItemKind = ItemKind.APPROVAL, **terms: Any) -> ItemDraft:
    """Return a refund to approve, or an amount to give, under `terms`."""
    given = kind is ItemKind.INPUT
    return ItemDraft(
        kind=kind,
        call_id=f"call_{index}",
        index=index,
        tool=ItemTool(name="refund", args={"order": f"A-{index}", "amount": 250.5}, definition="d" * 64),
        allowed=(Answer.VALUE, Answer.DENY) if given else (Answer.APPROVE, Answer.EDIT, Answer.DENY),
        target_arg="amount" if given else None,
        terms=RuleTerms(**{"timeout_s": 300, **terms}),
        rule_id="refunds",
        rule_version="v1",
    )


def draft(**changes: Any) -> SuspensionRecord:
    """Return a suspension without items."""
    run = RunRef(id="run_1", agent="support", owner="bot", thread_id="t1", title="Refund A-1")
    base = SuspensionRecord(
        id="sus_1", tenant="default", status=Status.PENDING, created_at_ms=0, updated_at_ms=0, run=run
    )
    return base.model_copy(update=changes)


def pending(*drafts: ItemDraft, now_ms: int = T0) -> SuspensionRecord:
    """Return a suspension with open items; one refund by default."""
    return suspend(draft(), drafts or (ask(),), now_ms).record


def word(record: SuspensionRecord, action: str = "approve", by: str = "ada", **fields: Any) -> Decision:
    """Return a reviewer's decision on the first item, or on `item_id`."""
    item_id = fields.pop("item_id", "i1")
    item = next(one for one in record.items if one.item_id == item_id)
    return Decision(
        **{
            "id": f"dec_{by}_{item_id}_{action}",
            "suspension_id": record.id,
            "suspension_version": record.version,
            "item_id": item_id,
            "action": DecisionAction(action),
            "args_digest": item.digest,
            "by": person(by),
            "at_ms": T0,
            **fields,
        }
    )


def intent(item_id: str | None = "i1", index: int = 0, **changes: Any) -> Intent:
    """Return the intent of a call that is about to start."""
    fields = {
        "item_id": item_id,
        "call_id": f"call_{index}",
        "index": index,
        "tool": "refund",
        "idempotency_key": f"sus_1:{item_id}",
        "idempotent": False,
        "attempt": 1,
        "holder": "w1",
        "begun_at_ms": T0,
    }
    return Intent.model_validate({**fields, **changes})


def types_of(change: Change) -> list[str]:
    """Return the kinds of the change's events."""
    return [str(event.type) for event in change.events]
