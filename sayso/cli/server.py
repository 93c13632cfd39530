"""The server's programs: those of the package `sayso-server`, or of the checkout that this SDK lies in."""

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sayso.errors import InvalidInput

FileArgument = Annotated[Path, typer.Argument(help="The file of the backup.")]
NewFileArgument = Annotated[Path, typer.Argument(help="A new file, or a folder for a file named by the time.")]
KeepOption = Annotated[
    int | None, typer.Option(min=1, help="How many backups stay in the folder; older ones are deleted.")
]
KeyOption = Annotated[
    Path | None, typer.Option(help="The key file of the backup; by default that in SAYSO_KEY_FILE, or none.")
]
TenantOption = Annotated[
    str | None, typer.Option(help="A tenant of the store that is meant, where tenants lie in several.")
]


def find_programs() -> Path:
    """Return the folder with `launch`, `service` and `workers`. Raises `InvalidInput` where none is installed."""
    package = find_spec("sayso_server")
    places = [Path(folder) / "tree" for folder in (package and package.submodule_search_locations) or ()]
    for place in (*places, Path(__file__).resolve().parents[2]):
        if (place / "launch" / "programs.py").is_file():
            return place
    raise InvalidInput(
        "The server is not installed here: pip install 'sayso[server]'. "
        "With wheels that `make wheels` built in a checkout: pip install --find-links dist 'sayso[server]'"
    )


_START = """\
import runpy, signal, sys
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
try:
    runpy.run_module(sys.argv.pop(), run_name="__main__", alter_sys=True)
finally:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
"""
"""Starts a program so that Ctrl-C ends it without a traceback, too, while it imports its modules, and at its end."""


def _run(module: str, *args: str) -> NoReturn:
    """Become a program of the server. It imports agents from the current folder, after its own modules."""
    given = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    folders = dict.fromkeys([str(find_programs()), *map(os.path.abspath, given), os.getcwd()])
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the other interpreter has started
    os.execve(sys.executable, [sys.executable, "-P", "-c", _START, *args, module], environ)  # noqa: S606 - no shell is meant


def up() -> None:
    """Run everything on this machine until Ctrl-C: store, service, workers, clock and the demo agent's model."""
    _run("launch")


def serve() -> None:
    """Run the service: API and pages."""
    _run("service")


def worker() -> None:
    """Run a worker, which resumes runs."""
    _run("workers")


def clock() -> None:
    """Run the clock, which keeps deadlines. One is enough; a second one stands in for it."""
    _run("workers.clock")


def setup() -> None:
    """Create the first admin and the demo agent's key where they are missing, then end."""
    _run("service.setup")


def macs() -> None:
    """Add MACs to stored records that have none, or new ones after a rotation. You confirm it first."""
    _run("service.macs")


def backup(
    file: NewFileArgument, keep: KeepOption = None, key_file: KeyOption = None, tenant: TenantOption = None
) -> None:
    """Back up the live store to a new file, with the settings of the service. Processes go on meanwhile."""
    kept = ["--keep", str(keep)] if keep is not None else []
    _run("service.features.backup", "save", os.path.abspath(file), *kept, *_list_options(key_file, tenant))


def restore(
    file: FileArgument,
    verify: Annotated[bool, typer.Option("--verify", help="Check all records, MACs, trails and counts.")] = False,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
) -> None:
    """Restore a backup into an empty store, with the settings of the service. All other programs are stopped."""
    verified = ["--verify"] if verify else []
    _run("service.features.backup", "restore", os.path.abspath(file), *verified, *_list_options(key_file, tenant))


def move_tenant(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tenant.")],
    to: Annotated[str, typer.Option(help="The URL of the other store; `-` reads it from the standard input.")],
    back: Annotated[bool, typer.Option("--back", help="Go back, unless a program has started there.")] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Delete what is left in that store of a tenant that moved from there.")
    ] = False,
) -> None:
    """Move a tenant to another store, with the settings of the service. Others are served meanwhile."""
    if back and erase:
        raise InvalidInput("Give --back or --erase, not both.")
    act = "back" if back else "erase" if erase else "move"
    _run("service.features.backup", act, to, "--tenant", name)


def _list_options(key_file: Path | None, tenant: str | None) -> list[str]:
    keys = ["--key-file", os.path.abspath(key_file)] if key_file is not None else []
    return [*keys, *(["--tenant", tenant] if tenant is not None else [])]


def recover(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Remove the authenticator app and passkeys of a person who lost them. Run it where the server's settings are."""
    _run("service.recover", name)


def demo() -> None:
    """Show the whole job once, unattended, on free ports."""
    _run("demo")
