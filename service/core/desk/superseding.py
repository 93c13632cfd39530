"""Settle a request under a key that its client used before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sayso.core.clock import new_id, new_number
from sayso.core.policy.external import ExternalCall
from sayso.core.records.events import Event
from sayso.core.records.items import ItemDraft, assign_numbers
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.superseding import find_reason, is_superseded, list_changes, supersede
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.commits import Room
from service.core.store.suspensions.saving import Saved, Suspensions


@dataclass(frozen=True)
class KeyedRequest:
    """A request under a key, as the rules judge it now. `again` asks once more for what time has ended."""

    key: str
    asked: SuspensionRecord
    calls: Sequence[ExternalCall]
    drafts: Sequence[ItemDraft]
    judged: tuple[Event, ...]
    again: bool = False


async def settle_repeated(
    suspensions: Suspensions, runs: Runs, saved: Saved, request: KeyedRequest, room: Room | None
) -> Saved:
    """Return where the request's key leads: to the stored suspension, or to a new one that asks about its calls again.

    Raises `IdempotencyConflict` for other calls, and `TooManyRequests` over `room`.
    """
    calls = [(call.call, call.definition) for call in request.calls]
    asked = request.asked.model_copy(update={"id": new_id("sus")})
    while True:
        record = saved.record
        if record.id == asked.id:  # asked by this request, and perhaps ended at once
            return saved
        if is_superseded(record):
            saved = await suspensions.read(str(record.following_id))
            continue
        same = record.run.request_id == asked.run.request_id
        known = {} if same else await runs.find_definitions([record])
        changed = list_changes(record, asked, calls, known, request.key)
        if find_reason(record, changed, again=request.again, now_ms=saved.now_ms) is None:
            return saved
        drafts = await suspensions.sampling.draw(request.drafts, asked.run)
        verb = _build_verb(asked, assign_numbers(drafts, new_number), request, changed)
        saved = await suspensions.change(record.id, verb, room=room)


def _build_verb(
    asked: SuspensionRecord, drafts: tuple[ItemDraft, ...], request: KeyedRequest, changed: tuple[str, ...]
) -> Callable[[SuspensionRecord, int], Change]:
    def verb(record: SuspensionRecord, now_ms: int) -> Change:
        if is_superseded(record):
            return Change(record)
        why = find_reason(record, changed, again=request.again, now_ms=now_ms)
        return Change(record) if why is None else supersede(record, asked, drafts, request.judged, why, now_ms)

    return verb
