"""New versions of calls whose changes a reviewer has requested."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sayso.core.clock import DAY_MS
from sayso.core.records.envelopes import Revision
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.errors import NotFound, Unreadable
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text
from service.core.store.keys import TenantKeys
from service.core.store.tenants import TenantStore

_KEPT_MS = 30 * DAY_MS


def note_returned(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Keep the item whose changes were requested for its new version, until that is decided otherwise."""
    run = update.after.run
    for item in update.after.items:
        outcome = item.outcome
        if outcome is None or item.drill is not None or (outcome.changes is None and item.revises is None):
            continue
        if update.before is not None and not find_item(update.before, item.item_id).open:
            continue
        key = keys.returned(run.owner, run.thread_id, item.tool.name)
        if outcome.changes is not None:
            commit.write("SET", key, f"{update.after.id} {item.item_id}", "PX", _KEPT_MS)
        else:
            commit.write("DEL", key)


class Revisions:
    """Finds, for calls that are asked about, the items that they are new versions of."""

    def __init__(self, store: TenantStore, read: Callable[[str], Awaitable[SuspensionRecord]]) -> None:
        self._redis, self._keys, self._read = store.redis, store.keys, read

    async def mark(self, drafts: Sequence[ItemDraft], run: RunRef) -> Sequence[ItemDraft]:
        """Return the drafts of a run, each with the item of the same tool and thread that it revises, if any."""
        if not drafts:
            return drafts
        names = [self._keys.returned(run.owner, run.thread_id, draft.tool.name) for draft in drafts]
        places: list[Any] = await self._redis.mget(names)
        return [
            draft if place is None else draft.model_copy(update={"revises": await self._find(text(place))})
            for draft, place in zip(drafts, places, strict=True)
        ]

    async def _find(self, place: str) -> Revision | None:
        suspension_id, _, item_id = place.partition(" ")
        try:
            outcome = find_item(await self._read(suspension_id), item_id).outcome
        except (NotFound, Unreadable):
            return None
        if outcome is None or outcome.changes is None:
            return None
        return Revision(suspension_id=suspension_id, item_id=item_id, round=outcome.changes.round)
