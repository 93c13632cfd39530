"""Read a run's events, and check that they follow from each other and end where the run's record says."""

from collections.abc import Callable

from sayso.client import requests
from sayso.client.clients import Client
from sayso.client.responses import EventPage, RunEvent
from sayso.errors import SaysoError
from sayso.records.events import TrailEntry, TrailHead, find_break

_PAGE = 200


def read_trail(client: Client, write: Callable[[RunEvent], None], run_id: str, head: TrailHead) -> TrailHead:
    """Write the events behind `head` and return the last; raises `SaysoError` where the trail was altered or cut."""
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
            f"Event {head.seq + 1} does not follow from those before it: the trail was altered there, or part of it is "
            "missing. Believe nothing from there on."
        )
    return TrailHead(event.seq, event.hash)


def _check_end(head: TrailHead, page: EventPage) -> None:
    """Raise where the trail does not end where the record said before the last page was read."""
    known = page.head
    if known is not None and head.seq < known.seq:
        raise SaysoError(
            f"The trail ends with event {head.seq}, and the run's record names event {known.seq}: what came after was "
            "cut off. Believe the record, and ask the operator to run `sayso doctor`."
        )
    if known is not None and head.seq == known.seq and head.hash != known.hash:
        raise SaysoError(f"Event {head.seq} is not the last one that the run's record names: the trail was altered.")
    if page.fault:
        raise SaysoError(page.fault)
