"""The calls that wait for a second look, as a person sees them."""

import asyncio
from dataclasses import dataclass

from sayso.core.records.decisions import Actor
from sayso.core.transitions.second_look import check_second_looker
from sayso.errors import NotFound, SaysoError, Unreadable
from service.core.desk.second_look import SeenCall
from service.core.wiring import Wiring
from service.features.control.store import Recents, Waiting

MOST = 50


@dataclass(frozen=True)
class WaitingCall:
    """A call that waits, and why this person cannot take its second look; an empty text if they can."""

    run_id: str
    seq: int
    call: SeenCall
    refusal: str


async def list_second_look(wiring: Wiring, by: Actor) -> list[WaitingCall]:
    """Return the calls that have waited longest, up to 50, those that the person can take first.

    A call whose run was deleted no longer waits.
    """
    waiting = await wiring.part(Recents).second_look.list_waiting(MOST)
    calls = await asyncio.gather(*(_read(wiring, entry, by) for entry in waiting))
    return sorted((call for call in calls if call is not None), key=lambda call: bool(call.refusal))


async def _read(wiring: Wiring, waiting: Waiting, by: Actor) -> WaitingCall | None:
    try:
        call = await wiring.desk.find_seen_call(waiting.run_id, waiting.seq)
    except NotFound:
        await wiring.part(Recents).second_look.remove(waiting.run_id, waiting.seq)
        return None
    except Unreadable:
        return None
    try:
        check_second_looker(call.record, call.seen, by)
    except SaysoError as error:
        return WaitingCall(waiting.run_id, waiting.seq, call, error.message)
    return WaitingCall(waiting.run_id, waiting.seq, call, "")
