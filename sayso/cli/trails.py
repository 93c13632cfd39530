"""Reading of a run's audit trail, with verification of its hash chain and its end."""

from collections.abc import Callable

from sayso.client import Client, requests
from sayso.client.responses import EventPage, RunEvent
from sayso.errors import SaysoError
from sayso.records.events import ChainCheck, EventType, TrailEntry, TrailHead

_PAGE = 200


def read_trail(client: Client, write: Callable[[RunEvent], None], run_id: str, check: ChainCheck) -> None:
    """Write the events behind those that were checked. Raises `SaysoError` if the trail was altered or cut.

    An agent gets a trail without some events, so the desk alone verifies it.
    """
    while (page := client.exchange(requests.list_events(run_id, check.head.seq, _PAGE))).next_after > check.head.seq:
        for event in page.events:
            write(event)
            if not page.partial:
                _follow(check, event)
        if page.partial:
            check.head = TrailHead(page.next_after)
            _check_fault(page)
    if not page.partial:
        _check_end(check, page)
    _check_fault(page)


def _check_fault(page: EventPage) -> None:
    if page.fault:
        raise SaysoError(page.fault)


def _follow(check: ChainCheck, event: RunEvent) -> None:
    place = {"seq": event.seq, "at_ms": round(event.at.timestamp() * 1000), "type": event.type}
    entry = TrailEntry.model_validate({**place, "data": event.data, "hash": event.hash, "erased_by": event.erased_by})
    if check.accept(entry):
        return
    if event.type == EventType.CONTENTS_ERASED:
        raise SaysoError(
            f"Event {event.seq} erased other events than those shown: one of them was altered, or the contents were "
            "erased while they were read. Read the trail again."
        )
    raise SaysoError(
        f"Event {check.head.seq + 1} does not follow from the event before it: the trail was altered or is incomplete. "
        "Do not trust any later event."
    )


def _check_end(check: ChainCheck, page: EventPage) -> None:
    head, recorded = check.head, page.head
    if check.unproven is not None:
        raise SaysoError(f"Event {check.unproven} has no contents, and no event records who erased them.")
    if recorded is not None and head.seq < recorded.seq:
        raise SaysoError(
            f"The trail ends with event {head.seq}, but the run's record names event {recorded.seq}: "
            "later events were removed. Ask the operator to run `sayso doctor`."
        )
    if recorded is not None and head.seq == recorded.seq and head.hash != recorded.hash:
        raise SaysoError(f"Event {head.seq} differs from the last event in the run's record: the trail was altered.")
