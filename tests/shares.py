"""The share of a long suite that `.ci/run` takes: another one with each change of the product.

With `SHARE=3` in the environment a third of the tests run. Which ones follows from the sources alone, so a run can be
repeated, and several changes in a row run them all.
"""

import os
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from service.core.settings import CHECKOUT

SHARE = int(os.environ.get("SHARE") or "1")


def is_in_share(name: str) -> bool:
    """Return whether the test of this name runs."""
    return crc32(name.encode(), _read_sources()) % SHARE == 0


def keep_share(config: pytest.Config, items: list[pytest.Item], folder: Path) -> None:
    """Deselect the tests below a folder that are not in the share."""
    others = [item for item in items if folder in item.path.parents and not is_in_share(item.nodeid)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@cache
def _read_sources() -> int:
    sources = (path for folder in ("sayso", "service", "workers") for path in (CHECKOUT / folder).rglob("*.py"))
    code = 0
    for path in sorted(sources):
        code = crc32(path.read_bytes(), code)
    return code
