"""`python -m service.macs`: add MACs to a store that has none, or new ones after a rotation, once a person confirms."""

import asyncio
import sys

from sayso.errors import SaysoError
from service.core.logs import start
from service.core.settings import Settings
from service.core.settings.tenants import list_desks
from service.core.store.connection.adoption import Survey, survey
from service.core.store.connection.macs import Macs

_WARNING = (
    "A MAC says that a desk wrote a record. Nothing here can tell whether another program did so before: compare the "
    "store with a backup first. Stop service, workers and clock."
)


def describe(found: Survey) -> str:
    """Return the counts as a sentence, with the names of some that are refused."""
    text = (
        f"{found.current} values have a MAC of the current key, {found.earlier} of an earlier one, "
        f"{found.absent} none, {found.wrong} a wrong one."
    )
    return f"{text} Refused: {', '.join(found.named)}." if found.named else text


def protect(url: str, macs: Macs) -> str:
    """Add MACs to one store once a person confirms; return what to print. Raises `SaysoError` for wrong MACs."""
    before = asyncio.run(survey(url, macs))
    print(describe(before))
    if before.wrong:
        raise SaysoError("Restore or delete the records with a wrong MAC first. Nothing was changed.")
    print(_WARNING)
    if input("Type yes to vouch for these records: ").strip() != "yes":
        raise SaysoError("Nothing was changed.")
    asyncio.run(survey(url, macs, add=True))
    return describe(asyncio.run(survey(url, macs)))


def main(settings: Settings) -> int:
    """Add MACs; return 1 where nothing was changed."""
    if settings.key_file is None:
        print("MACs need SAYSO_KEY_FILE. `sayso keyfile new` makes a key file.", file=sys.stderr)
        return 1
    try:
        stores = dict.fromkeys((desk.store_url, desk.key_file) for desk in list_desks(settings).values())
        for url, path in stores:
            print(protect(url, Macs(path)))
    except (SaysoError, EOFError) as error:
        print(error.message if isinstance(error, SaysoError) else "Nothing was changed.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(start(main, several=True))
