"""Reviewers' comments on the items of a run. Agents never read them, and no decision depends on them."""

from pydantic import BaseModel, ConfigDict

from sayso.core.canonical_json import canonical_json, digest_json
from sayso.errors import Conflict, IdempotencyConflict, InvalidInput, NotFound
from service.store.connection.connecting import text, translated
from service.store.keys import CHANGES
from service.store.lua import read_script
from service.store.tenants import TenantStore

LONGEST_COMMENT = 2000
MOST_COMMENTS = 500
"""The most comments on the items of one run."""

_MOST_BYTES = 4 * 1024 * 1024
_SAVED, _NO_RUN, _OTHER = range(3)


class Comment(BaseModel):
    """One comment of a person on an item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    suspension_id: str
    item_id: str
    author: str
    text: str
    at_ms: int = 0


class Comments:
    """The comments on the items of runs, in order."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings
        self._append = store.redis.register_script(read_script("append"))

    async def add(self, run_id: str, comment: Comment) -> None:
        """Save a comment with the store's time; one that is saved under the same id is saved once.

        Raises `InvalidInput`, `NotFound`, `IdempotencyConflict`, and `Conflict` over the limit of the run.
        """
        if not comment.text.strip() or len(comment.text) > LONGEST_COMMENT:
            raise InvalidInput(f"A comment has 1 to {LONGEST_COMMENT} characters.")
        entry = comment.model_dump(mode="json", exclude={"at_ms"})
        keys = self._keys
        async with translated():
            state, *_ = await self._append(
                keys=[keys.run(run_id), keys.comments(run_id), keys.comments_seen(run_id)],
                args=[
                    MOST_COMMENTS,
                    _MOST_BYTES,
                    CHANGES + run_id,
                    comment.id,
                    digest_json(entry)[:32],
                    canonical_json(entry),
                ],
            )
        if state == _SAVED:
            return
        if state == _NO_RUN:
            raise NotFound(f"There is no run {run_id!r}. Its comments can no longer be added.")
        if state == _OTHER:
            raise IdempotencyConflict("This key was used for another comment. Send a new key.")
        raise Conflict(f"The items of this run have {MOST_COMMENTS} comments. No more can be added.")

    async def list_all(self, run_id: str) -> list[Comment]:
        """Return all comments on the items of a run, the earliest first."""
        async with translated():
            raws = await self._redis.lrange(self._keys.comments(run_id), 0, -1)
        read = (self._read(f"comment {number} of {run_id}", text(raw)) for number, raw in enumerate(raws, start=1))
        return [comment for comment in read if comment is not None]

    def _read(self, name: str, raw: str) -> Comment | None:
        time, _, entry = raw.partition("|")
        comment = self._readings.read_other(Comment, entry, name)
        return comment.model_copy(update={"at_ms": int(time)}) if comment is not None else None
