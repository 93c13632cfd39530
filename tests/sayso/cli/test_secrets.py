"""Secrets are masked in everything that the terminal shows of a suspension."""

from datetime import UTC, datetime
from typing import Any

from sayso.cli.reviews import mask_suspension
from sayso.client.responses import Suspension
from sayso.core.text.redaction import MASK

NOW = datetime(2026, 11, 21, tzinfo=UTC).isoformat()
CANARY = "s3cret-canary"


def suspension(**item: Any) -> Suspension:
    """Return a suspension with one item, whose order may be secret."""
    actor = {"id": "anna", "kind": "human", "channel": "api"}
    report = {"success": False, "output": {"echo": CANARY}, "error": f"no {CANARY}"}
    given: dict[str, Any] = {
        "item_id": "i1",
        "kind": "approval",
        "tool": {"name": "refund", "args": {"order": CANARY, "note": f"use {CANARY}"}},
        "prompt": {"title": CANARY, "reason": f"for {CANARY}"},
        "terms": {"deadline_at": NOW, "fallback": {"action": "deny"}, "secrets": ["order"]},
        "digest": "d",
        "target_arg": "order",
        "outcome": {"verdict": "approved", "message": f"ok {CANARY}", "by": actor, "start_by": NOW},
        "permit": {"redeemed_at": NOW, "holder": "h", "report": report},
        "inquiries": [{"id": "q", "by": actor, "text": f"why {CANARY}?"}],
        **item,
    }
    run = {"id": "r", "agent": "a", "owner": "o", "claimed_title": CANARY, "claimed_context": {"k": CANARY}}
    return Suspension.model_validate(
        {
            "id": "sus_1",
            "status": "pending",
            "created_at": NOW,
            "run": run,
            "items": [given],
            "end": {"status": "failed", "error": CANARY},
        }
    )


def test_mask_suspension_masks_every_quotation() -> None:
    masked = mask_suspension(suspension())
    assert CANARY not in masked.model_dump_json()
    assert masked.items[0].tool.args == {"order": MASK, "note": f"use {MASK}"}


def test_mask_suspension_without_secrets_changes_nothing() -> None:
    plain = suspension(terms={"deadline_at": NOW, "fallback": {"action": "deny"}})
    assert mask_suspension(plain) is plain


def test_mask_suspension_masks_edits_and_values() -> None:
    actor = {"id": "anna", "kind": "human", "channel": "api"}
    decided: dict[str, Any] = {
        "verdict": "answered",
        "args": {"order": "other-canary"},
        "value": "third-canary",
        "by": actor,
    }
    masked = mask_suspension(suspension(outcome={**decided, "start_by": NOW}))
    assert "canary" not in masked.model_dump_json()
