"""The share of the long suites that `.ci/run` takes: another one with each change of the product.

With `SHARE=5` in the environment every fifth browser's file, journey, mutation and framework is taken. Where the count
begins follows from the sources alone, so a run can be repeated, and several changes in a row run all.
`python -m tests.shares NAME...` prints which of the names are taken.
"""

import os
import sys
from collections.abc import Iterable
from functools import cache
from zlib import crc32

import pytest

from service.core.settings import CHECKOUT

SHARE = int(os.environ.get("SHARE") or "1")

_WHOLE = tuple(CHECKOUT / "tests" / folder for folder in ("proofs", "frameworks"))
"""The tests below run always: mutations and frameworks are chosen before their tests are collected."""


def take_share(names: Iterable[str]) -> list[str]:
    """Return the names that are taken, sorted."""
    return sorted(names)[_read_sources() % SHARE :: SHARE]


def keep_share(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Deselect the tests that are not in the share. Those of a file, which share what they start, stay together."""
    if SHARE == 1:
        return
    files = {item.path for item in items if not any(folder in item.path.parents for folder in _WHOLE)}
    others = files - {CHECKOUT / name for name in take_share(str(file.relative_to(CHECKOUT)) for file in files)}
    config.hook.pytest_deselected(items=[item for item in items if item.path in others])
    items[:] = [item for item in items if item.path not in others]


@cache
def _read_sources() -> int:
    sources = (path for folder in ("sayso", "service", "workers") for path in (CHECKOUT / folder).rglob("*.py"))
    code = 0
    for path in sorted(sources):
        code = crc32(path.read_bytes(), code)
    return code


if __name__ == "__main__":
    print(*take_share(sys.argv[1:]))
