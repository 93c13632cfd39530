"""The turns of a thread, and the tools that ran in it."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from sayso.core.records.suspensions import MOST_TOOLS, Progress, SuspensionRecord
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text
from service.core.store.connection.pipeline import Pipeline, Script
from service.core.store.keys import TenantKeys
from service.core.store.lua import read_script

_NUMBER = Script(read_script("turn"))
MOST_TURNS = 10_000  # the highest number of a turn; all later turns share it
_KEPT_S = 30 * 86_400


class Turn(NamedTuple):
    """The number of a turn in its thread, from 1, and what ran in the thread before."""

    number: int
    progress: Progress


async def number_turn(pipeline: Pipeline, thread: str, tools: str, turn: str) -> Turn:
    """Return the turn; all turns beyond `MOST_TURNS` share a number. Threads last 30 days."""
    field = sha256(turn.encode()).hexdigest()[:16]
    number, names = await pipeline.run(_NUMBER, [thread, tools], [field, MOST_TURNS, MOST_TOOLS, _KEPT_S])
    return Turn(int(number), Progress().with_tools(map(text, names)))


def list_started(before: SuspensionRecord | None, after: SuspensionRecord) -> Sequence[str]:
    """Return the tools of a thread that a change let start, in order; runs outside of a thread have none."""
    if before is None or after.run.thread_id == after.run.id:
        return ()
    earlier = {item.item_id for item in before.items if item.permit is not None}
    permits = [item.tool.name for item in after.items if item.permit is not None and item.item_id not in earlier]
    journaled = {intent.idempotency_key for intent in before.journal}
    intents = [intent.tool for intent in after.journal if intent.idempotency_key not in journaled]
    return tuple(dict.fromkeys((*permits, *intents)))


def note_tools(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Add the tools that start to those of the thread; the names beyond `MOST_TOOLS` are not needed."""
    after = update.after
    started = list_started(update.before, after)
    if not started:
        return
    key = keys.thread_tools(after.run.owner, after.run.thread_id)
    scored = ((f"{after.updated_at_ms}.{place:03}", name) for place, name in enumerate(started))
    commit.write("ZADD", key, "NX", *(part for pair in scored for part in pair))
    commit.write("ZREMRANGEBYRANK", key, MOST_TOOLS + 1, -1)
    commit.write("PEXPIRE", key, _KEPT_S * 1000)
