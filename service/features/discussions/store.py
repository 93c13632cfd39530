"""Files and comments on the items of a run, which agents never read, and who has which item's page open."""

from collections import defaultdict
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from sayso.core.canonical_json import canonical_json, digest_json
from sayso.core.records.base import Stored
from sayso.errors import Altered, Conflict, IdempotencyConflict, InvalidInput, NotFound, TooLarge
from service.core.settings import Settings
from service.core.store.connection.connecting import name_shared, text
from service.core.store.keys import CHANGES
from service.core.store.lua import read_script
from service.core.store.tenants import EndedRun, TenantStore

_SAVED, _NO_RUN, _TOO_MANY, _NO_ROOM, _NO_SHARE = range(5)
_SHARE = "share "


class Attachment(Stored):
    """A file attached to an item. `preview` is the beginning of a text, and `cut` says whether there is more.

    `shown` says whether pages show an image; one that claims too many pixels is downloaded.
    """

    size: int
    media_type: str
    id: str
    suspension_id: str
    item_id: str
    name: str
    sha256: str
    author: str
    author_kind: Literal["agent", "human"]
    preview: str = ""
    cut: bool = False
    shown: bool = True
    at_ms: int = 0


class Attachments:
    """The files attached to the items of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings
        self._attach = store.redis.register_script(read_script("attach"))

    async def add(
        self, run_id: str, attachment: Attachment, content: bytes, settings: Settings, key_id: str | None = None
    ) -> None:
        """Save a file with the store's time, once for each id; raises `NotFound`, `Conflict`, `TooLarge`.

        It counts for its author, an agent or a person, and for the key by which it came.
        """
        keys = self._keys
        place = f"{attachment.suspension_id} {attachment.item_id} "
        described = attachment.model_dump_json(exclude={"at_ms"})
        shares = [f"{attachment.author_kind} {attachment.author}", *([f"key {key_id}"] if key_id else [])]
        most, most_bytes = settings.attachments_per_item, settings.attachments_limit_bytes
        share_bytes = settings.attachments_per_key_bytes
        limits = (most, most_bytes, name_shared(self._redis, CHANGES + run_id), place, attachment.id, described)
        state, *facts = await self._attach(
            keys=[keys.run(run_id), keys.files(run_id), keys.file_contents(run_id), *keys.file_sizes],
            args=[*limits, content, share_bytes, *shares],
        )
        if state == _SAVED:
            return
        if state == _NO_RUN:
            raise NotFound(f"There is no run {run_id!r}. Nothing can be attached to its items.")
        if state == _TOO_MANY:
            raise Conflict(f"The item has {most} attached files. No more can be attached.")
        if state == _NO_SHARE:
            raise TooLarge(
                f"Your attached files have {facts[0]} bytes of {share_bytes}; this one does not fit. Raise "
                "SAYSO_ATTACHMENTS_PER_KEY_BYTES, or wait until old runs are deleted."
            )
        raise TooLarge(
            f"All attached files have {facts[0]} bytes of {most_bytes}; this one does not fit. Raise "
            "SAYSO_ATTACHMENTS_LIMIT_BYTES, or wait until old runs are deleted."
        )

    async def list_all(self, run_id: str, suspension_id: str, item_id: str) -> list[Attachment]:
        stored = await self._redis.hgetall(self._keys.files(run_id))
        place = f"{suspension_id} {item_id} "
        files = [self._read(text(name), text(raw)) for name, raw in stored.items() if text(name).startswith(place)]
        return sorted((file for file in files if file is not None), key=lambda file: (file.at_ms, file.id))

    def _read(self, name: str, raw: str) -> Attachment | None:
        time, _, described = raw.partition("|")
        file = self._readings.read_other(Attachment, described, f"attached file {name}")
        return file.model_copy(update={"at_ms": int(time)}) if file is not None and time.isdecimal() else None

    async def read(self, run_id: str, attachment: Attachment) -> bytes:
        """Return the content of a file; raises `NotFound`, and `Altered` for another content than was attached."""
        content = await self._redis.hget(self._keys.file_contents(run_id), attachment.id)
        if not isinstance(content, bytes):
            raise NotFound(f"There is no attached file {attachment.id!r}.")
        if sha256(content).hexdigest() != attachment.sha256:
            raise Altered(
                f"The content of the file {attachment.id} was altered in the store. Restore it from a backup."
            )
        return content


async def delete_discussion(store: TenantStore, run: EndedRun) -> list[tuple[str, ...]]:
    """Delete the files of a run and give back their bytes; an erasure also deletes the comments."""
    keys = store.keys
    parts = (*((keys.comments,) if run.erased else ()), keys.files, keys.file_contents)
    commands: list[tuple[str, ...]] = [("DEL", key(run.run_id)) for key in parts]
    held = await store.redis.hgetall(keys.files(run.run_id))
    sizes = {text(name): value for name, value in held.items()}
    if total := int(sizes.get("bytes", 0)):
        shares = [(name.removeprefix(_SHARE), size) for name, size in sizes.items() if name.startswith(_SHARE)]
        released = (("HINCRBY", keys.file_shares, share, str(-int(size))) for share, size in shares)
        return [*commands, ("DECRBY", keys.file_bytes, str(total)), *released]
    return commands


LONGEST_COMMENT = 2000
MOST_COMMENTS = 500  # the most comments on the items of one run
_ADDED, _NO_SUCH_RUN, _OTHER = range(3)


class Comment(Stored):
    """One comment of a person on an item."""

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
        state, *_ = await self._append(
            keys=[keys.run(run_id), keys.comments(run_id), keys.comments_seen(run_id)],
            args=[
                MOST_COMMENTS,
                (4 * 1024 * 1024),
                name_shared(self._redis, CHANGES + run_id),
                comment.id,
                digest_json(entry)[:32],
                canonical_json(entry),
            ],
        )
        if state == _ADDED:
            return
        if state == _NO_SUCH_RUN:
            raise NotFound(f"There is no run {run_id!r}. Its comments can no longer be added.")
        if state == _OTHER:
            raise IdempotencyConflict("This key was used for another comment. Send a new key.")
        raise Conflict(f"The items of this run have {MOST_COMMENTS} comments. No more can be added.")

    async def list_all(self, run_id: str) -> list[Comment]:
        """Return all comments on the items of a run, the earliest first."""
        raws = await self._redis.lrange(self._keys.comments(run_id), 0, -1)
        read = (self._read(f"comment {number} of {run_id}", text(raw)) for number, raw in enumerate(raws, start=1))
        return [comment for comment in read if comment is not None]

    def _read(self, name: str, raw: str) -> Comment | None:
        time, _, entry = raw.partition("|")
        comment = self._readings.read_other(Comment, entry, name)
        return comment.model_copy(update={"at_ms": int(time)}) if comment is not None and time.isdecimal() else None


LASTS_MS = 25_000  # how long a page counts as open after its last message; it sends one every 10 seconds


class Present(NamedTuple):
    """The people at each item, by the id of its row, and the time at which the first of them is gone; 0 for nobody."""

    people: dict[str, list[str]]
    until_ms: int


class Presence:
    """The open pages of one tenant's items."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self.topic = f"presence:{store.keys.tenant}"

    async def note(self, row_id: str, person: str, now_ms: int) -> None:
        """Record that a person has the item's page open, and wake the pages that show it if that is new."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.zremrangebyscore(self._keys.presence, "-inf", now_ms)
            pipe.zadd(self._keys.presence, {f"{row_id} {person}": now_ms + LASTS_MS})
            pipe.pexpire(self._keys.presence, LASTS_MS)
            _, added, _ = await pipe.execute()
        if added:
            await self._redis.publish(name_shared(self._redis, CHANGES + self.topic), "")

    async def forget(self, row_id: str, person: str) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.zrem(self._keys.presence, f"{row_id} {person}")
            pipe.publish(name_shared(self._redis, CHANGES + self.topic), "")
            await pipe.execute()

    async def read(self, now_ms: int) -> Present:
        views: list[Any] = await self._redis.zrangebyscore(self._keys.presence, now_ms, "+inf", withscores=True)
        people: dict[str, list[str]] = defaultdict(list)
        for name, _ in views:
            row_id, _, person = text(name).partition(" ")
            people[row_id].append(person)
        return Present({row_id: sorted(names) for row_id, names in people.items()}, int(views[0][1]) if views else 0)
