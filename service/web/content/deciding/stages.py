"""The stages from an item's decision to its effect, as its receipt lists them."""

from collections.abc import Iterator
from dataclasses import dataclass

from sayso.records.items import Item
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.transitions.item_states import ItemState, find_item_state
from service.web.content.details import Result


@dataclass(frozen=True)
class Stage:
    """One stage; without a time it is still to come."""

    text: str
    at_ms: int | None
    tone: str = "plain"


def list_stages(record: SuspensionRecord, item: Item, result: Result | None) -> list[Stage]:
    """Return the stages of a decided item; none while it is open."""
    if item.outcome is None:
        return []
    stages = [Stage("Decided", item.outcome.at_ms)]
    waiting = sum(1 for other in record.items if other.open)
    if record.status is Status.CANCELLED:
        return [*stages, Stage("The run was cancelled", record.updated_at_ms, "bad")]
    if waiting:
        others = "another item" if waiting == 1 else f"{waiting} other items"
        return [*stages, Stage(f"The run waits for {others}", None, "wait")]
    stages += _list_client_stages(record, item) if record.resume.mode == "poll" else _list_worker_stages(record, item)
    stages += _list_results(record, item, result)
    if record.receipt.settled_at_ms is not None:
        stages.append(Stage("The suspension is settled", record.receipt.settled_at_ms))
    return stages


def _list_client_stages(record: SuspensionRecord, item: Item) -> Iterator[Stage]:
    if item.permit is not None:
        yield Stage(f"{record.run.owner} redeemed the permit", item.permit.redeemed_at_ms)
    elif item.outcome is not None and item.outcome.may_run:
        yield Stage(f"{record.run.owner} starts the call", None)


def _list_worker_stages(record: SuspensionRecord, item: Item) -> Iterator[Stage]:
    receipt, lease = record.receipt, record.lease
    requeued = f" (requeued {receipt.redrives} times)" if receipt.redrives else ""
    job = f", job {receipt.job_id}" if receipt.job_id else ""
    worker = f"{lease.holder}, attempt {lease.attempt}{job}" if lease is not None else "a worker"
    yield Stage(f"Queued for the workers{requeued}", receipt.enqueued_at_ms)
    yield Stage(f"Leased by {worker}", receipt.leased_at_ms)
    if record.status is Status.FAILED and record.end is not None:
        yield Stage(f"The workers gave up: {record.end.error}", record.updated_at_ms, "bad")
    elif receipt.resumed_at_ms is not None or receipt.error is None:
        yield Stage("The run resumed", receipt.resumed_at_ms)
    else:
        yield Stage(f"Decided, not yet resumed: {receipt.error}", None, "bad")
    if item.permit is not None:
        yield Stage("The permit was redeemed", item.permit.redeemed_at_ms)


def _list_results(record: SuspensionRecord, item: Item, result: Result | None) -> Iterator[Stage]:
    may_run, by_client = item.outcome is not None and item.outcome.may_run, record.resume.mode == "poll"
    if result is not None:
        text = f"{item.tool.name} ran{result.latency}" if result.success else f"{item.tool.name} failed"
        yield Stage(text, result.at_ms, "good" if result.success else "bad")
    elif find_item_state(record, item) is ItemState.IN_DOUBT and not by_client:
        yield Stage("No result was reported", None, "bad")
    elif record.end is not None and by_client:
        if may_run:
            missed = "No result was reported" if item.permit is not None else "The call was not started in time"
            yield Stage(missed, None, "bad")
    elif may_run and record.status is not Status.FAILED:
        yield Stage(f"{item.tool.name} runs", None)
