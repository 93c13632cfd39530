"""Files attached to the items of a run. They are deleted with the run."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sayso.errors import Conflict, NotFound, TooLarge
from service.settings import Settings
from service.store.connection.connecting import text, translated
from service.store.keys import CHANGES
from service.store.lua import read_script
from service.store.tenants import TenantStore

_SAVED, _NO_RUN, _TOO_MANY, _NO_ROOM, _NO_SHARE = range(5)
_SHARE = "share "


class Attachment(BaseModel):
    """A file attached to an item. `preview` is the beginning of a text, and `cut` says whether there is more.

    `shown` says whether pages show an image; one that claims too many pixels is downloaded.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    """The files attached to the items of one tenant, within its limits."""

    def __init__(self, store: TenantStore, settings: Settings) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings
        self.limit_bytes = settings.attachment_limit_bytes
        self._most, self._most_bytes = settings.attachments_per_item, settings.attachments_limit_bytes
        self._share_bytes = settings.attachments_per_key_bytes
        self._attach = store.redis.register_script(read_script("attach"))

    async def add(self, run_id: str, attachment: Attachment, content: bytes, key_id: str | None = None) -> None:
        """Save a file with the store's time, once for each id; raises `NotFound`, `Conflict`, `TooLarge`.

        It counts for its author, an agent or a person, and for the key by which it came.
        """
        keys = self._keys
        place = f"{attachment.suspension_id} {attachment.item_id} "
        described = attachment.model_dump_json(exclude={"at_ms"})
        shares = [f"{attachment.author_kind} {attachment.author}", *([f"key {key_id}"] if key_id else [])]
        limits = (self._most, self._most_bytes, CHANGES + run_id, place, attachment.id, described)
        async with translated():
            state, *facts = await self._attach(
                keys=[keys.run(run_id), keys.files(run_id), keys.file_contents(run_id), *keys.file_sizes],
                args=[*limits, content, self._share_bytes, *shares],
            )
        if state == _SAVED:
            return
        if state == _NO_RUN:
            raise NotFound(f"There is no run {run_id!r}. Nothing can be attached to its items.")
        if state == _TOO_MANY:
            raise Conflict(f"The item has {self._most} attached files. No more can be attached.")
        if state == _NO_SHARE:
            raise TooLarge(
                f"Your attached files have {facts[0]} bytes of {self._share_bytes}; this one does not fit. Raise "
                "SAYSO_ATTACHMENTS_PER_KEY_BYTES, or wait until old runs are deleted."
            )
        raise TooLarge(
            f"All attached files have {facts[0]} bytes of {self._most_bytes}; this one does not fit. Raise "
            "SAYSO_ATTACHMENTS_LIMIT_BYTES, or wait until old runs are deleted."
        )

    async def list_all(self, run_id: str, suspension_id: str, item_id: str) -> list[Attachment]:
        """Return the files of an item, the earliest first."""
        async with translated():
            stored = await self._redis.hgetall(self._keys.files(run_id))
        place = f"{suspension_id} {item_id} "
        files = [self._read(text(name), text(raw)) for name, raw in stored.items() if text(name).startswith(place)]
        return sorted((file for file in files if file is not None), key=lambda file: (file.at_ms, file.id))

    def _read(self, name: str, raw: str) -> Attachment | None:
        time, _, described = raw.partition("|")
        file = self._readings.read_other(Attachment, described, f"attached file {name}")
        return file.model_copy(update={"at_ms": int(time)}) if file is not None else None

    async def read(self, run_id: str, attachment_id: str) -> bytes:
        """Return the content of a file; raises `NotFound`."""
        async with translated():
            content = await self._redis.hget(self._keys.file_contents(run_id), attachment_id)
        if not isinstance(content, bytes):
            raise NotFound(f"There is no attached file {attachment_id!r}.")
        return content


async def list_released(store: TenantStore, run_id: str) -> list[tuple[str, ...]]:
    """Return the commands that give back the bytes of a run's files, with the keys they write to."""
    async with translated():
        held = await store.redis.hgetall(store.keys.files(run_id))
    sizes = {text(name): value for name, value in held.items()}
    released = [
        ("HINCRBY", store.keys.file_shares, name.removeprefix(_SHARE), str(-int(value)))
        for name, value in sizes.items()
        if name.startswith(_SHARE)
    ]
    total = int(sizes.get("bytes", 0))
    return [("DECRBY", store.keys.file_bytes, str(total)), *released] if total else []
