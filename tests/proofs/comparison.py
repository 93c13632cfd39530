"""The fields in which a record and its model must agree."""

from typing import Any

from sayso.core.records.suspensions import SuspensionRecord
from tests.proofs.model.records import SuspensionModel


def describe(record: SuspensionRecord) -> dict[str, Any]:
    """Return the model's fields of a record."""
    return {
        "status": str(record.status),
        "due_at": record.due_at_ms,
        "lease": (record.lease.holder, record.lease.attempt, record.lease.until_ms) if record.lease else None,
        "counts": (record.receipt.tries, record.receipt.redrives),
        "journal": {intent.index for intent in record.journal},
        "noted": {intent.index for intent in record.journal if intent.result is not None},
        "waits": bool(record.waits_for),
        "end": str(record.end.status) if record.end else None,
        "items": [
            {
                "decisions": [one.by.id for one in item.decisions if one.by.id != "timeout"],
                "undoable": (item.undoable.by.id, item.undoable.until_ms) if item.undoable else None,
                "outcome": (str(item.outcome.verdict), item.outcome.by.id) if item.outcome else None,
                "start_by": item.outcome.start_by_ms if item.outcome else 0,
                "terms": (item.terms.deadline_at_ms, item.terms.reviewers, item.reminded, item.escalated),
                "redeemed": item.permit is not None,
                "held": (item.held_to_ms, item.grace_ms),
            }
            for item in record.items
        ],
    }


def describe_model(suspension: SuspensionModel) -> dict[str, Any]:
    return {
        "status": suspension.status,
        "due_at": suspension.due_at,
        "lease": (suspension.holder, suspension.attempt, suspension.until) if suspension.holder else None,
        "counts": (suspension.tries, suspension.redrives),
        "journal": suspension.journal,
        "noted": suspension.noted & suspension.journal,
        "waits": suspension.waits,
        "end": suspension.end,
        "items": [
            {
                "decisions": list(item.decisions),
                "undoable": (item.undoable.by, item.undoable.until) if item.undoable else None,
                "outcome": (item.verdict, item.by) if item.verdict else None,
                "start_by": item.start_by,
                "terms": (item.deadline, item.reviewers, item.reminded, item.escalated),
                "redeemed": item.redeemed,
                "held": (item.held_to, item.grace),
            }
            for item in suspension.items
        ],
    }
