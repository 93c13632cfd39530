"""Reading of a run's audit trail, with verification of its hash chain and its end."""

from collections.abc import Callable

from sayso.client import Client, requests
from sayso.client.responses import EventPage, RunEvent
from sayso.errors import SaysoError
from sayso.records.events import TrailEntry, TrailHead, find_break

_PAGE = 200


def read_trail(client: Client, write: Callable[[RunEvent], None], run_id: str, head: TrailHead) -> TrailHead:
    """Write the events behind `head` and return the last one. Raises `SaysoError` if the trail was altered or cut."""
    while (page := client.exchange(requests.list_events(run_id, head.seq, _PAGE))).events:
        for event in page.events:
            write(event)
            head = _follow(head, event)
    _check_end(head, page)
    return head


def _follow(head: TrailHead, event: RunEvent) -> TrailHead:
    at_ms = round(event.at.timestamp() * 1000)
    entry = TrailEntry(seq=event.seq, at_ms=at_ms, type=event.type, data=event.data, hash=event.hash)
    if find_break([entry], head) is not None:
        raise SaysoError(
            f"Event {head.seq + 1} does not follow from the event before it: the trail was altered or is incomplete. "
            "Do not trust any later event."
        )
    return TrailHead(event.seq, event.hash)


def _check_end(head: TrailHead, page: EventPage) -> None:
    recorded = page.head
    if recorded is not None and head.seq < recorded.seq:
        raise SaysoError(
            f"The trail ends with event {head.seq}, but the run's record names event {recorded.seq}: "
            "later events were removed. Ask the operator to run `sayso doctor`."
        )
    if recorded is not None and head.seq == recorded.seq and head.hash != recorded.hash:
        raise SaysoError(f"Event {head.seq} differs from the last event in the run's record: the trail was altered.")
    if page.fault:
        raise SaysoError(page.fault)
