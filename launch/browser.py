"""Find a Chromium for the browser journey, and install Debian's where there is none and we may.

`python -m launch.browser` is what `make test` runs first; it prints the path. Tests ask `find_browser`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from launch.errors import NoBrowser

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "chromium-headless-shell"


def find_browser() -> Path | None:
    """Return a Chromium on PATH, if there is one."""
    return next((Path(found) for name in NAMES if (found := shutil.which(name))), None)


def ensure_browser() -> Path:
    """Return a Chromium, installed now if need be, or raise `NoBrowser`."""
    if found := find_browser():
        return found
    _install()
    if found := find_browser():
        return found
    raise NoBrowser


def install_commands(*, is_root: bool, package: str = PACKAGE) -> tuple[list[str], ...]:
    """Return the commands that install a package of Debian's; as another user through a sudo that asks nothing."""
    prefix = [] if is_root else ["sudo", "-n"]
    return (
        [*prefix, "apt-get", "update", "-q"],
        [*prefix, "apt-get", "install", "-y", "-q", "--no-install-recommends", package],
    )


def _install() -> None:
    for command in install_commands(is_root=os.geteuid() == 0):
        if shutil.which(command[0]) is None:
            raise NoBrowser
        done = subprocess.run(
            command, stdout=sys.stderr, check=False, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
        if done.returncode != 0:
            raise NoBrowser(
                f"'{' '.join(command)}' failed, so there is no Chromium; install {PACKAGE} or chromium by hand."
            )


def main() -> int:
    """Print where the browser is."""
    try:
        print(ensure_browser())
    except NoBrowser as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
