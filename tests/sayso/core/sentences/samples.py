"""Items, records and outcomes for tests of sentences and pages."""

from typing import Any

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, ActorKind, Decision, Outcome, Verdict
from sayso.core.records.items import Binding, Item, ItemDraft, ItemTool, Prompt, freeze_item
from sayso.core.records.suspensions import RunRef, Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms

NOW = 1_000_000
BEN = Actor(id="ben", kind=ActorKind.HUMAN)
_ARGS: JsonObject = {"order_id": "A-1932", "amount": 250, "currency": "EUR"}


def make_item(draft: dict[str, Any] | None = None, **terms: Any) -> Item:
    """Return an open item under `terms`; `draft` replaces fields of its draft."""
    fields: dict[str, Any] = {
        "call_id": "call_0",
        "index": 0,
        "tool": ItemTool(name="refund_payment", args=_ARGS, definition="d" * 64),
        "prompt": Prompt(reason="Refunds over 100 need a person"),
        "rule_id": "refunds-over-100",
        "terms": RuleTerms.model_validate(terms),
        **(draft or {}),
    }
    binding = Binding(tenant="default", run_id="run_1", attempt=1, suspension_id="sus_1")
    return freeze_item(ItemDraft.model_validate(fields), "i1", binding, NOW)


def make_record(item: Item, **fields: Any) -> SuspensionRecord:
    """Return a pending suspension with one item."""
    given = {
        "id": "sus_1",
        "tenant": "default",
        "status": Status.PENDING,
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
        "run": RunRef(id="run_1", agent="support", owner="demo", thread_id="t"),
        "items": (item,),
        **fields,
    }
    return SuspensionRecord.model_validate(given)


def make_outcome(verdict: Verdict, by: Actor = BEN, **fields: Any) -> Outcome:
    """Return an outcome that `by` decided."""
    return Outcome(verdict=verdict, by=by, at_ms=NOW, start_by_ms=NOW, digest="d", **fields)


def make_decision(action: str, **fields: Any) -> Decision:
    """Return ben's decision on the item."""
    given = {"id": "d1", "suspension_id": "sus_1", "suspension_version": 1, "item_id": "i1", "args_digest": "d"}
    return Decision.model_validate({**given, "action": action, "by": BEN, "at_ms": NOW, **fields})
