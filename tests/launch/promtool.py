"""Prometheus' own checker of rules: that of the machine, or Debian's, kept in the cache of the user."""

import shutil
from pathlib import Path

from tests.debian import CACHE, unpacked

PACKAGE = "prometheus"  # the smallest that holds promtool: 20 MB; Go takes half an hour to build it
_PLACE = Path("usr/bin/promtool")


def find_promtool() -> str:
    """Return the path of promtool; skips the test where it is neither installed nor among Debian's packages."""
    if installed := shutil.which("promtool"):
        return installed
    kept = CACHE / "promtool"
    if not kept.exists():
        with unpacked(PACKAGE) as folder:
            (folder / _PLACE).replace(kept)
    return str(kept)
