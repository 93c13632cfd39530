"""The share of a long suite that `.ci/run` takes: another one with each change of the product.

With `SHARE=3` in the environment a third of the tests run. Which ones follows from the sources alone, so a run can be
repeated, and several changes in a row run them all.
"""

import os
from functools import cache
from zlib import crc32

import pytest

from service.core.settings import CHECKOUT

SHARE = int(os.environ.get("SHARE") or "1")

_SINGLE = CHECKOUT / "tests" / "frameworks"
"""The tests below are chosen one by one, all others by file: the tests of a file share a browser or an installation."""

_WHOLE = CHECKOUT / "tests" / "proofs"
"""The tests below run always. The mutations choose for themselves."""


def keep_share(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Deselect the tests that are not in the share."""
    others = [item for item in items if not _is_chosen(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if _is_chosen(item)]


def is_in_share(name: str) -> bool:
    """Return whether what has this name runs."""
    return SHARE == 1 or crc32(name.encode(), _read_sources()) % SHARE == 0


def _is_chosen(item: pytest.Function) -> bool:
    if _WHOLE in item.path.parents:
        return True
    return is_in_share(item.nodeid if _SINGLE in item.path.parents else item.nodeid.partition("::")[0])


@cache
def _read_sources() -> int:
    sources = (path for folder in ("sayso", "service", "workers") for path in (CHECKOUT / folder).rglob("*.py"))
    code = 0
    for path in sorted(sources):
        code = crc32(path.read_bytes(), code)
    return code
