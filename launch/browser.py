"""Finds a Chromium for the browser tests, and installs Debian's if there is none.

`make test` runs `python -m launch.browser` first. It prints the path.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from launch import NoBrowser

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "chromium-headless-shell"


def find_browser() -> Path | None:
    """Return a Chromium on PATH, if any."""
    return next((Path(path) for name in NAMES if (path := shutil.which(name))), None)


def ensure_browser() -> Path:
    """Return a Chromium, and install it if needed. Raises `NoBrowser`."""
    if browser := find_browser():
        return browser
    _install()
    if browser := find_browser():
        return browser
    raise NoBrowser


def install_commands(*, is_root: bool, package: str = PACKAGE) -> tuple[list[str], ...]:
    """Return the commands that install a Debian package. Other users need a sudo without password."""
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
                f"'{' '.join(command)}' failed, so there is no Chromium. Install {PACKAGE} or chromium yourself."
            )


def main() -> int:
    """Print the path of the browser."""
    try:
        print(ensure_browser())
    except NoBrowser as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
