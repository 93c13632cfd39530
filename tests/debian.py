"""Files of Debian's packages that tests need, unpacked without being installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sayso"


@contextmanager
def unpacked(*packages: str) -> Iterator[Path]:
    """Yield a folder with the files of packages, to move from there; skips the test where they cannot be fetched."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip(f"this machine has no apt-get to fetch {packages[0]}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        got = subprocess.run(["apt-get", "download", "-q", *packages], cwd=folder, capture_output=True, check=False)
        if got.returncode != 0:
            pytest.skip(f"apt-get cannot fetch {packages[0]}: {got.stderr.decode().strip()}")
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
        yield folder
