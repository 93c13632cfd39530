"""`python -m service.setup`: create the first admin and the demo agent's key, and print what was generated."""

import asyncio
import sys
from collections.abc import AsyncIterator

from sayso.core.clock import new_secret
from sayso.errors import Conflict, SaysoError
from service.assembly import assemble
from service.core.logs import start
from service.core.settings import Settings, variable_of
from service.core.settings.tenants import list_desks
from service.core.store.connection.connecting import check_durability
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from service.core.wiring import Wiring

ADMIN = "admin"
DEMO = "demo"
_PASSWORD_CHARS = 20


async def set_up(settings: Settings) -> AsyncIterator[str]:
    """Create what is missing and yield the lines to print."""
    password = settings.admin_password.get_secret_value() if settings.admin_password else None
    key = settings.key.get_secret_value() if settings.key else None
    async with assemble(settings) as wiring:
        yield await _set_up_admin(wiring, password, settings.public_url)
        yield await _set_up_demo_key(wiring, key)


async def _set_up_admin(wiring: Wiring, password: str | None, url: str) -> str:
    sign_in = f"Sign in at {url} as {ADMIN}"
    known = await wiring.reviewers.find(ADMIN)
    if known is None:
        chosen = password or new_secret()[:_PASSWORD_CHARS]
        await wiring.reviewers.add(ADMIN, chosen, ("reviewer", "admin"))
        await wiring.activity.record("person_added", "", door="setup", target=ADMIN, roles=("reviewer", "admin"))
        if password is None:
            return f"{sign_in} with the password {chosen} (shown this once)."
    elif not known.active:
        return f"The reviewer {ADMIN} was shut out and stays so; sign in at {url} as another admin."
    elif password is None:
        return f"{sign_in} with the password it has."
    elif not await wiring.reviewers.has_password(ADMIN, password):
        await wiring.reviewers.set_password(ADMIN, password)
        await wiring.activity.record("password_set", "", door="setup", target=ADMIN)
    return f"{sign_in} with the password in {variable_of('admin_password')}."


async def _set_up_demo_key(wiring: Wiring, key: str | None) -> str:
    named = [agent for agent in await wiring.api_keys.list_all() if agent.name == DEMO]
    if key is not None:
        try:
            await wiring.api_keys.create(DEMO, key)
        except Conflict as refusal:
            return f"{variable_of('key')} does not hold: {refusal.message}"
        return f"The agent {DEMO} has the key in {variable_of('key')}."
    if wiring.settings.env == "production":
        return f"No key is made for the agent {DEMO} in production; make one for each agent on /keys."
    if named:
        return f"The agent {DEMO} has the key it has."
    created, secret = await wiring.api_keys.create(DEMO)
    await wiring.activity.record("key_created", "", door="setup", target=created.id, name=DEMO)
    return f"The agent {DEMO} has the key {secret} (shown this once)."


def main(settings: Settings) -> int:
    """Set up; return 1 on failure."""

    async def run() -> None:
        for desk in list_desks(settings).values():
            await check_durability(desk.store_url, allow_weak=True)
            await check_format(desk.store_url, Macs(desk.key_file))
            async for line in set_up(desk):
                print(line, flush=True)

    try:
        asyncio.run(run())
    except SaysoError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(start(main, sees=("admin_password", "key"), several=True))
