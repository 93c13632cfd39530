"""Permits: when an item's call may start, and the redeeming of its permit."""

from sayso.canonical_json import JsonObject
from sayso.clock import iso_utc
from sayso.errors import DeadlinePassed, IllegalTransition, StaleDigest
from sayso.records.decisions import Permit
from sayso.records.items import Item, digest_item
from sayso.records.suspensions import SuspensionRecord
from sayso.transitions.in_doubt import Choice, read_choice


def may_start(item: Item) -> bool:
    """Whether the item's outcome lets a client start its call."""
    outcome = item.outcome
    if outcome is None or not outcome.may_run or item.permit is not None or item.is_void:
        return False
    return item.doubt is None or read_choice(outcome.value).choice is Choice.RUN_AGAIN


def next_lapse(record: SuspensionRecord, now_ms: int) -> int:
    """Return when the next unused permit or missing report lapses; `now_ms` without any."""
    unused = [item.start_by_ms for item in record.items if may_start(item)]
    unreported = [item.permit.report_by_ms for item in record.items if item.permit and item.permit.report is None]
    return min((*unused, *unreported), default=now_ms)


def redeem_permit(
    record: SuspensionRecord, item: Item, permit: Permit, now_ms: int, in_vain: int | None = None
) -> Item:
    """Return the item with its permit redeemed, for exactly the arguments decided on.

    A permit that the attempt `in_vain` redeemed is valid again: its worker was killed before the call started.

    Raises `DeadlinePassed` after the latest start, `StaleDigest` for other arguments, and `IllegalTransition`, also for
    every drill and every plan.
    """
    if item.is_void:
        kind = "drill" if item.drill is not None else "plan"
        raise IllegalTransition(f"Item {item.item_id} is a {kind}. Its permit is void, and its call must not run.")
    outcome = item.outcome
    if outcome is None or not outcome.may_run:
        raise IllegalTransition(f"Item {item.item_id} is not approved. Its call must not run.")
    redeemed = item.permit is not None and item.permit.attempt != in_vain
    if not redeemed and now_ms >= item.start_by_ms:
        raise DeadlinePassed(f"The permit for {item.tool.name} ended at {iso_utc(item.start_by_ms)}.")
    if redeemed and not item.tool.idempotent:
        raise IllegalTransition(f"The permit of item {item.item_id} is already redeemed; its call may have run.")
    args = approved_args(item)
    if digest_item(record.binding, item.item_id, item.tool, args, item.target_arg, item.terms) != outcome.digest:
        raise StaleDigest(f"The arguments of item {item.item_id} are not those decided on. Its call must not run.")
    return item.model_copy(update={"permit": permit})


def approved_args(item: Item) -> JsonObject:
    """Return the arguments that were decided on: the tool call's own, or those of the outcome."""
    if item.outcome is not None and item.outcome.args is not None:
        return item.outcome.args
    return item.tool.args
