"""`python -m service.features.backup save|restore|move|back|erase PLACE`: copies in a file or another store."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from sayso.core.clock import iso_utc, monotonic_ms, now_ms
from sayso.core.key_files import SecretKey, read_key_file
from sayso.errors import InvalidInput, SaysoError
from service.core.logs import start
from service.core.settings import Settings
from service.core.settings.tenants import list_desks
from service.core.store.connection.formats import CURRENT, check_format
from service.core.store.connection.macs import Macs
from service.features.backup.files import SUFFIX, list_old, write_backup
from service.features.backup.moving import between
from service.features.backup.restoring import restore
from service.features.backup.store import read_store


def main(given: argparse.Namespace, settings: Settings) -> int:
    """Do what the arguments say; return 1 on failure."""
    try:
        desks = _choose(list_desks(settings), given.tenant)
        asyncio.run(_ACTS[given.act](given, desks))
    except SaysoError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


def _choose(desks: Mapping[str, Settings], tenant: str | None) -> Mapping[str, Settings]:
    """Return the tenants of one store; raises `InvalidInput`."""
    if tenant is not None and tenant not in desks:
        raise InvalidInput(f"There is no tenant {tenant!r}. Name one of {', '.join(desks)}.")
    urls = {desk.store_url for desk in desks.values()} if tenant is None else {desks[tenant].store_url}
    if len(urls) > 1:
        raise InvalidInput(
            f"The tenants lie in {len(urls)} stores. Name a tenant with --tenant, and use one file for each store."
        )
    return {name: desk for name, desk in desks.items() if desk.store_url in urls}


def _read_keys(path: Path | None) -> tuple[SecretKey, ...]:
    return read_key_file(path) if path is not None else ()


async def _save(given: argparse.Namespace, desks: Mapping[str, Settings]) -> None:
    desk = next(iter(desks.values()))
    await check_format(desk.store_url, Macs(desk.key_file))
    keys = _read_keys(given.key_file or desk.key_file)
    begun_ms, path = monotonic_ms(), given.file
    if given.keep is not None and (given.keep < 1 or not path.is_dir()):
        raise InvalidInput(f"--keep {given.keep} needs a number from 1 on, and a folder; {path} may be none.")
    if path.is_dir():
        path /= f"{iso_utc(now_ms()).replace(':', '-')}{SUFFIX}"
    header = write_backup(path, str(CURRENT), now_ms(), keys[0] if keys else None, read_store(desk.store_url))
    took_s = (monotonic_ms() - begun_ms) / 1000
    held = f"encrypted with the key {header.key}" if header.key else "in clear: name a key with --key-file"
    print(f"{path}: {path.stat().st_size} bytes in {took_s:.1f} s, {held}.")
    for old in list_old(path, given.keep) if given.keep is not None else ():
        old.unlink()
        print(f"{old}: deleted, as more than {given.keep} are there.")


async def _restore(given: argparse.Namespace, desks: Mapping[str, Settings]) -> None:
    desk = next(iter(desks.values()))
    keys = {key.id: key for key in (*_read_keys(given.key_file), *_read_keys(desk.key_file))}
    async for line in restore(given.file, keys, desk.store_url, desks, verify=given.verify):
        print(line, flush=True)


async def _move(given: argparse.Namespace, desks: Mapping[str, Settings]) -> None:
    url = sys.stdin.readline().strip() if given.place == "-" else given.place
    async with between(desks[given.tenant], url) as pair:
        if given.act == "move":
            async for line in pair.run():
                print(line, flush=True)
        else:
            print(await (pair.go_back() if given.act == "back" else pair.erase()))


_ACTS = {"save": _save, "restore": _restore, "move": _move, "back": _move, "erase": _move}


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m service.features.backup")
    parser.add_argument("act", choices=_ACTS)
    parser.add_argument("place")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--key-file", type=Path)
    parser.add_argument("--tenant")
    parser.add_argument("--keep", type=int)
    given = parser.parse_args()
    given.file = Path(given.place)
    return given


if __name__ == "__main__":
    raise SystemExit(start(partial(main, _read_arguments()), several=True))
