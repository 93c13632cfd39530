"""Transitions of previews: people ask the workers what a call would do, and a worker stores what its tool says."""

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, Decision, DecisionAction
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item
from sayso.core.records.previews import Preview, PreviewRequest, find_preview, put_preview, same_args
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.closing import change_terms, put_item
from sayso.core.transitions.deciding import find_item, list_made, void
from sayso.core.transitions.decision_checks import check_change, check_reviewer
from sayso.core.transitions.legal import check_step
from sayso.core.transitions.permits import shows_effect
from sayso.errors import Conflict


def request_preview(
    record: SuspensionRecord, item_id: str, args: JsonObject | None, by: Actor, now_ms: int, lost_ms: int = 0
) -> Change:
    """Ask the workers for a preview of the item's arguments, or of edited ones, in place of what was asked before.

    Raises `NotAllowed` for who may not decide on the item, `Conflict` where no worker can preview it, or as
    `decide` does for an item that is closed or late.
    """
    item = find_item(record, item_id)
    check_change(record, item, "request_preview", now_ms - lost_ms)
    by = check_reviewer(record, item, by)
    if not shows_effect(item) or not (record.resume.mode == "worker" or item.drill is not None):
        raise Conflict(f"No worker can preview {item.tool.name}. Decide without a preview.")
    if same_args(args, item.tool.args):
        args = None
    wanted = item.model_copy(update={"preview_request": PreviewRequest(by=by, at_ms=now_ms, args=args)})
    data = {"suspension_id": record.id, "item_id": item.item_id, "by": by.model_dump(mode="json")}
    asked = Event(EventType.PREVIEW_REQUESTED, {**data, "edited": args is not None})
    return put_item(record, wanted, (asked,), now_ms)


def store_preview(record: SuspensionRecord, item_id: str, preview: Preview, now_ms: int) -> Change:
    """Store the preview that was asked for last; one that comes late, or that nobody asked for, changes nothing.

    If it is another one than before, the item gets a new digest, and approvals of its arguments no longer count.
    """
    item = find_item(record, item_id)
    asked = item.preview_request
    if not item.open or asked is None or not same_args(preview.args, asked.args):
        return Change(record)
    check_step(record, "store_preview")
    before = find_preview(item.previews, preview.args)
    update = {"previews": put_preview(item.previews, preview), "preview_request": None}
    stored = change_terms(record, item.model_copy(update=update), {})
    about = {"preview": preview.digest, "edited": preview.args is not None}
    data = {"suspension_id": record.id, "item_id": item.item_id, **about}
    data |= {"error": preview.error} if preview.error is not None else {}
    change = put_item(record, stored, (Event(EventType.PREVIEW_STORED, data),), now_ms)
    if before is not None and before.digest == preview.digest:
        return change
    approvals = _list_approvals(item, preview)
    voided = void(change.record, stored, approvals, item.confirmation, now_ms, outdated=True)
    return voided._replace(events=change.events + voided.events)


def _list_approvals(item: Item, preview: Preview) -> tuple[Decision, ...]:
    approvals = (made for made in list_made(item) if made.action is DecisionAction.APPROVE)
    return tuple(made for made in approvals if same_args(made.args, preview.args))
