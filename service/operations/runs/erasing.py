"""Erasure on demand: the contents of one run, and every result that may quote them."""

from sayso.core.records.decisions import Actor, Erasure
from sayso.errors import InvalidInput
from service.store.runs.erasures import Why
from service.wiring import Wiring


async def erase_run(wiring: Wiring, run_id: str, by: Actor, reason: str) -> Erasure:
    """Erase the contents of an ended run, and the replays of rules, whose results may list its calls.

    Repeating it completes what a crash interrupted. Raises `InvalidInput` without a reason, `NotFound`, `Unreadable`,
    and `Conflict` for a run that has not ended or whose trail was altered.
    """
    reason = reason.strip()
    if not reason:
        raise InvalidInput("An erasure needs a reason. Say why, without the data that you erase.")
    now_ms = await wiring.schedule.now_ms()
    erasure = await wiring.retention.erasures.erase(run_id, Why(by, reason, now_ms))
    replays = wiring.rules.history.replays
    for replay in await replays.list_all(now_ms):
        await replays.delete(replay.id)
    return erasure
