"""What channels keep: suspensions with cards to send, and tokens, positions, prompts and subscriptions."""

from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio.client import Pipeline

from sayso.core.records.base import Immutable, Stored
from sayso.core.transitions.deliveries import next_delivery_ms
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text
from service.core.store.keys import TenantKeys
from service.core.store.tenants import DueList, StorePart, TenantStore


def queue_cards(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """List the suspension under the next moment at which one of its cards needs an attempt."""
    for before, after in update.pairs:
        at_ms = next_delivery_ms(after)
        if at_ms is not None:
            commit.write("ZADD", keys.cards, at_ms, after.id)
        elif before is not None and next_delivery_ms(before) is not None:
            commit.write("ZREM", keys.cards, after.id)


class CardQueue(DueList):
    """The suspensions of one tenant with deliveries to attempt."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store.redis, store.keys.cards)

    async def bring_forward(self, now_ms: int) -> None:
        """Make every attempt due now, after the clock went back: an early attempt does no harm."""
        later: list[Any] = await self._redis.zrangebyscore(self._list, f"({now_ms}", "+inf")
        if later:
            await self._redis.zadd(self._list, {text(member): now_ms for member in later}, xx=True)


_TOKEN, _PUSH_KEY = "channel token", "push key"
STATE_MS = 600_000  # how long an admin has to confirm an installation at the provider


class Installs(StorePart):
    """The installed apps of one tenant."""

    async def save_state(self, state_hash: str, owner: str) -> None:
        await self._redis.set(self._keys.install_state(state_hash), owner, px=STATE_MS)

    async def take_state(self, state_hash: str) -> str | None:
        """Return a state's owner and delete it; None for an unknown one."""
        owner = await self._redis.getdel(self._keys.install_state(state_hash))
        return text(owner) if owner is not None else None

    async def save_token(self, channel: str, sealed: str) -> None:
        await self._redis.set(self._keys.channel_token(channel), self._sealer.seal(_TOKEN, sealed, channel))

    async def replace_token(self, channel: str, before: str, after: str) -> None:
        """Save the token as encrypted anew, unless another was saved meanwhile."""
        key = self._keys.channel_token(channel)

        async def write(pipe: Pipeline) -> None:
            current = await pipe.get(key)
            pipe.multi()  # type: ignore[no-untyped-call]
            if current is not None and self._sealer.open(_TOKEN, current, channel) == before:
                pipe.set(key, self._sealer.seal(_TOKEN, after, channel))

        await self._redis.transaction(write, key)

    async def find_token(self, channel: str) -> str | None:
        token = await self._redis.get(self._keys.channel_token(channel))
        return self._sealer.open(_TOKEN, token, channel) if token is not None else None


class MailedCode(Immutable):
    """A person, and the address that they want to receive mails at."""

    person: str
    address: str


class MailedCodes(StorePart):
    """The codes of one tenant that were mailed and not yet entered, by their hashes."""

    async def save(self, code_hash: str, mailed: MailedCode, valid_ms: int) -> None:
        await self._redis.set(self._keys.mailed_code(code_hash), mailed.model_dump_json(), px=valid_ms)

    async def find(self, code_hash: str) -> MailedCode | None:
        raw = await self._redis.get(self._keys.mailed_code(code_hash))
        return MailedCode.model_validate_json(raw) if raw else None


class ChannelNotes(StorePart):
    """The notes of one tenant's channels, each for a limited time."""

    async def save(self, channel: str, name: str, note: str, valid_ms: int) -> None:
        await self._redis.set(self._keys.channel_note(channel, name), note, px=valid_ms)

    async def read(self, channel: str, name: str) -> str | None:
        note = await self._redis.get(self._keys.channel_note(channel, name))
        return text(note) if note is not None else None


class Subscription(Stored):
    """A browser's address at its push service, and the keys to encrypt for it. The endpoint is a secret."""

    endpoint: str
    p256dh: str
    auth: str

    @property
    def address(self) -> str:
        """The name in contacts and deliveries: the push service's host, and a digest of the endpoint."""
        return f"{urlsplit(self.endpoint).netloc}/{sha256(self.endpoint.encode()).hexdigest()[:24]}"


class Subscriptions(StorePart):
    """The subscriptions of one tenant."""

    async def save(self, subscription: Subscription) -> None:
        sealed = self._readings.seal_other(subscription, f"subscription {subscription.address}")
        await self._redis.hset(self._keys.subscriptions, subscription.address, sealed)

    async def find(self, address: str) -> Subscription | None:
        raw = await self._redis.hget(self._keys.subscriptions, address)
        return self._readings.require_other(Subscription, raw, f"subscription {address}") if raw else None

    async def count(self) -> int:
        """Return how many browsers are subscribed."""
        return int(await self._redis.hlen(self._keys.subscriptions))

    async def delete(self, address: str) -> None:
        await self._redis.hdel(self._keys.subscriptions, address)

    async def keep_key(self, fresh: str) -> str:
        """Return the saved private key; the first call saves `fresh`. Browsers subscribe to one key for good."""
        await self._redis.set(self._keys.vapid, self._sealer.seal(_PUSH_KEY, fresh), nx=True)
        return self._sealer.open(_PUSH_KEY, await self._redis.get(self._keys.vapid) or fresh)
