"""Secrets are masked in everything that the terminal shows of a suspension."""

from datetime import UTC, datetime
from typing import Any

from sayso.cli.reviews import mask_suspension
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.items import ItemTool, Prompt
from sayso.core.records.suspensions import RunEnd, RunStatus
from sayso.core.records.terms import Fallback
from sayso.core.text.redaction import MASK
from sayso.wire.items import DecisionView, InquiryView, ItemView, OutcomeView, PermitView, ReportView
from sayso.wire.suspensions import RunRefView, SuspensionView
from sayso.wire.terms import TermsView
from tests.sayso.views import view

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CANARY = "s3cret-canary"


ANNA = Actor(id="anna", kind=ActorKind.HUMAN)
TERMS = view(TermsView, deadline_at=NOW, fallback=Fallback(), secrets=("order",))


def suspension(**item: Any) -> SuspensionView:
    """Return a suspension with one item, whose order may be secret."""
    outcome = view(OutcomeView, verdict="approved", message=f"ok {CANARY}", by=ANNA, start_by=NOW)
    report = view(ReportView, success=False, output={"echo": CANARY}, error=f"no {CANARY}", at=NOW)
    given: dict[str, Any] = {
        "item_id": "i1",
        "kind": "approval",
        "tool": view(ItemTool, name="refund", args={"order": CANARY, "note": f"use {CANARY}"}),
        "prompt": Prompt(title=CANARY, reason=f"for {CANARY}", metadata={"k": CANARY}),
        "terms": TERMS,
        "target_arg": "order",
        "outcome": outcome,
        "permit": view(PermitView, redeemed_at=NOW, holder="h", report=report),
        "inquiries": (view(InquiryView, id="q", by=ANNA, text=f"why {CANARY}?", at=NOW),),
        **item,
    }
    run = view(RunRefView, id="r", claimed_title=CANARY, claimed_context={"k": CANARY}, started_at=NOW)
    end = RunEnd(status=RunStatus.FAILED, error=CANARY)
    return view(SuspensionView, id="sus_1", run=run, items=(view(ItemView, **given),), end=end)


def test_mask_suspension_masks_every_quotation() -> None:
    masked = mask_suspension(suspension())
    assert CANARY not in repr(masked)
    assert masked.items[0].tool.args == {"order": MASK, "note": f"use {MASK}"}


def test_mask_suspension_without_secrets_changes_nothing() -> None:
    plain = suspension(terms=TERMS.model_copy(update={"secrets": ()}))
    assert mask_suspension(plain) is plain


DECIDED: dict[str, Any] = {"args": {"order": "other-canary"}, "value": "third-canary", "message": "no third-canary"}


def test_mask_suspension_masks_edits_and_values() -> None:
    outcome = view(OutcomeView, verdict="answered", by=ANNA, start_by=NOW, **DECIDED)
    assert "canary" not in repr(mask_suspension(suspension(outcome=outcome)))


def test_mask_suspension_masks_decisions_of_an_open_item() -> None:
    decision = view(DecisionView, action="value", by=ANNA, at=NOW, **DECIDED)
    assert "canary" not in repr(mask_suspension(suspension(outcome=None, decisions=(decision,))))
