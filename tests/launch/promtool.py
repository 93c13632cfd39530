"""Prometheus' own checker of rules: that of the machine, or Debian's, kept in the cache of the user."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PACKAGE = "prometheus"  # the smallest that holds promtool: 20 MB; Go takes half an hour to build it
_PLACE = Path("usr/bin/promtool")


def find_promtool() -> str:
    """Return the path of promtool; skips the test where it is neither installed nor among Debian's packages."""
    if installed := shutil.which("promtool"):
        return installed
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sayso" / "promtool"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            _unpack(Path(folder))
            (folder / _PLACE).replace(kept)
    return str(kept)


def _unpack(folder: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("promtool is not installed, and this machine has no apt-get to fetch Debian's")
    got = subprocess.run(["apt-get", "download", "-q", PACKAGE], cwd=folder, capture_output=True, check=False)
    if got.returncode != 0:
        pytest.skip(f"promtool is not installed, and apt-get cannot fetch {PACKAGE}: {got.stderr.decode().strip()}")
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
