"""The address to which each code was mailed: a code proves the receipt at that address alone."""

from pydantic import BaseModel, ConfigDict

from service.store.connection.connecting import translated
from service.store.tenants import TenantStore


class MailedCode(BaseModel):
    """A person, and the address that they want to receive mails at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    person: str
    address: str


class MailedCodes:
    """The codes of one tenant that were mailed and not yet entered, by their hashes."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def save(self, code_hash: str, mailed: MailedCode, valid_ms: int) -> None:
        async with translated():
            await self._redis.set(self._keys.mailed_code(code_hash), mailed.model_dump_json(), px=valid_ms)

    async def find(self, code_hash: str) -> MailedCode | None:
        """Return the person and address of a valid code, or None."""
        async with translated():
            raw = await self._redis.get(self._keys.mailed_code(code_hash))
        return MailedCode.model_validate_json(raw) if raw else None
