"""`python -m service.recover NAME`: remove the app and passkeys of a person who lost them, and end their sessions."""

import asyncio
import sys

from sayso.errors import NotFound, SaysoError
from service.assembly import assemble
from service.core.logs import start
from service.core.settings import Settings
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from service.features.passkeys.accounts import PasskeyAccounts


async def recover(settings: Settings, name: str) -> str:
    """Remove what a person signs in with but the password, and return what was removed; raises `NotFound`."""
    async with assemble(settings) as wiring:
        people, accounts, log = wiring.reviewers, wiring.feature(PasskeyAccounts), wiring.activity
        person = await people.find(name)
        if person is None:
            raise NotFound(f"There is no person {name!r} in this store. Check the name and SAYSO_TENANT.")
        if person.app is not None:
            await people.codes.remove(name)
            await log.record("app_removed", "", door="setup", target=name)
        passkeys = await accounts.list_of(name)
        for passkey in passkeys:
            await accounts.remove(name, passkey.id)
            await log.record("passkey_removed", "", door="setup", target=name, which=passkey.id)
        ended = await people.end_sessions(name)
        await log.record("sessions_ended", "", door="setup", target=name, sessions=ended)
    app = "The authenticator app" if person.app is not None else "No authenticator app"
    return f"{app} and {len(passkeys)} passkeys of {name} are removed, and all sessions ended. The password stays."


def main(settings: Settings) -> int:
    """Recover the person that the command names; return 1 on failure."""

    async def run() -> str:
        await check_format(settings.store_url, Macs(settings.key_file))
        return await recover(settings, name)

    try:
        _, name = sys.argv
    except ValueError:
        print("Give the name of one person: sayso recover NAME", file=sys.stderr)
        return 2
    try:
        print(asyncio.run(run()))
    except SaysoError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(start(main))
