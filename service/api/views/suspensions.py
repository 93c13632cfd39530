"""Views of suspensions, their leases and receipts."""

from collections.abc import Iterable
from typing import Literal

from pydantic import AliasPath, Field

from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import RunEnd, Status, SuspensionRecord
from sayso.core.transitions.freezing import find_freeze
from sayso.core.transitions.states import find_item_state
from service.api.views.base import Timestamp, View
from service.api.views.items import HoldView, ItemView
from service.api.views.runs import ErasureView, RunRefView
from service.operations.masking import mask_typed


class ReceiptView(View):
    """The progress of a suspension after its decision."""

    decided_at: Timestamp | None = Field(validation_alias="decided_at_ms")
    enqueued_at: Timestamp | None = Field(
        validation_alias="enqueued_at_ms",
        description="When it was last enqueued for the workers; `redrives` counts repetitions.",
    )
    job_id: str | None = Field(description="The job of the worker that leased it.")
    leased_at: Timestamp | None = Field(validation_alias="leased_at_ms")
    resumed_at: Timestamp | None = Field(validation_alias="resumed_at_ms")
    settled_at: Timestamp | None = Field(validation_alias="settled_at_ms")
    redrives: int
    tries: int
    error: str | None = Field(description="Why the suspension is decided but not resumed; null once it is.")


class LeaseView(View):
    """A worker's lease on the run."""

    holder: str
    attempt: int
    until: Timestamp = Field(validation_alias="until_ms")


class UsageView(View):
    """The calls of one model that a run has made, and their tokens."""

    model: str = Field(description="Empty if unknown.")
    input_tokens: int
    output_tokens: int
    model_calls: int | None = Field(description="Null for runs of earlier versions.")


class ProgressView(View):
    """What the run had done when its calls were judged."""

    tools: tuple[str, ...] | None = Field(description="The tools that ran before, once each; null if unknown.")
    usage: tuple[UsageView, ...] | None = Field(description="The model calls before; null if unknown.")


class SuspensionView(View):
    """A saved wait of a run."""

    id: str
    version: int
    status: Status
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    updated_at: Timestamp = Field(validation_alias="updated_at_ms")
    deadline_at: Timestamp | None = Field(
        validation_alias="deadline_at_ms", description="The earliest deadline of the open items."
    )
    run: RunRefView
    step: int
    mode: Literal["worker", "poll"] = Field(
        validation_alias=AliasPath("resume", "mode"), description="Who runs approved calls: a worker or the client."
    )
    items: tuple[ItemView, ...]
    on_deny: Literal["continue", "degrade", "fail"]
    progress: ProgressView | None = Field(description="Null if nothing is known of the run before.")
    receipt: ReceiptView
    lease: LeaseView | None
    end: RunEnd | None
    previous_id: str | None
    following_id: str | None
    erasure: ErasureView | None = Field(description="Who erased the contents of its run; null if nobody did.")

    @classmethod
    def of(cls, record: SuspensionRecord, freezes: Iterable[Freeze], owner: str | None = None) -> "SuspensionView":
        """Return the view of a suspension; with `owner`, that of an agent: its numbers, and nothing of draws.

        Secrets that people typed are masked for everybody; the call gets them with its permit.
        """
        record, frozen = mask_typed(record), tuple(freezes)
        view = cls.model_validate(record)
        items = zip(view.items, record.items, strict=True)
        numbers = owner is not None and owner == record.run.owner
        shown = (
            entry.model_copy(
                update={
                    "state": find_item_state(record, item),
                    "number": (numbers and item.secret_number) or None,
                    "freeze": HoldView.model_validate(held) if (held := find_freeze(record, item, frozen)) else None,
                }
            )
            for entry, item in items
        )
        kept = shown if owner is None else map(_hide_draw, shown)
        return view.model_copy(update={"items": tuple(kept)})


def _hide_draw(item: ItemView) -> ItemView:
    """Return an item without what tells that it was drawn: its quorum, and who else has decided."""
    terms = item.terms.model_copy(update={"quorum": None})
    deciding = item.decisions[-1:] if item.outcome is not None else ()
    return item.model_copy(update={"terms": terms, "drawn": "", "decisions": deciding, "voided": ()})
