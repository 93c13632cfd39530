"""The app as tests see it: served in their own process on a real store, with a client a credential."""

import re
from dataclasses import dataclass, field

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from redis.asyncio import Redis

from service.core.wiring import Wiring
from tests.waits import until

POLICY = """
version: 1
default: request_approval
rules:
  - id: too-much
    tool: refund
    when: args.amount > 500
    action: deny
    reason: Nobody refunds that much.
  - id: who-gets-it
    tool: pay
    action: request_user_input
    ask: {prompt: Whose account, target_arg: account}
"""


@dataclass
class World:
    """A running app with the usual people and agents, and the tokens they hold."""

    app: FastAPI
    wiring: Wiring
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, who: str | None = None) -> AsyncClient:
        """A client that sends the credential of `who`; of nobody by default."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        return AsyncClient(transport=ASGITransport(app=self.app), base_url="http://127.0.0.1:8321", headers=headers)


async def waiting(world: World, topic: str) -> None:
    """Return once somebody waits for the topic."""

    async def look() -> object:
        return world.wiring.watch._waiters.get(topic)

    await until(look)


async def read_store(url: str) -> dict[bytes, bytes | None]:
    """Everything there is, but for counts of attempts and asks, what processes say of themselves, and last uses."""
    async with Redis.from_url(url) as client:
        beside = re.compile(rb"sayso:attempts|:pace|:rules$|:used$|:comparing$")
        names = [name async for name in client.scan_iter() if not beside.search(name)]
        return {name: await _read_value(client, name) for name in names}


async def _read_value(client: Redis, name: bytes) -> bytes | None:
    """Return what a key holds; of a hash or set, independent of the order that it has in the store's memory."""
    kind = await client.type(name)
    if kind == b"hash":
        return repr(sorted((await client.hgetall(name)).items())).encode()
    if kind == b"set":
        return repr(sorted(await client.smembers(name))).encode()
    return await client.dump(name)
