"""Environment variables that look like settings and are none."""

import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

PREFIX = "SAYSO_"
LAUNCHED_FROM = "SAYSO_LAUNCHED_FROM"
"""The launcher's mark on the programs that it starts."""

OTHERS = ("SAYSO_URL", "SAYSO_KEY", LAUNCHED_FROM, "SAYSO_BENCH_STAMPS")
"""Variables that are no settings of the service: the SDK's two, the launcher's mark, and the benchmark's."""


def find_unknown(known: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each variable that names no setting, with the nearest name: it would have no effect."""
    settings = tuple(known)
    for name in sorted(os.environ):
        upper = name.upper()
        if upper.startswith(PREFIX) and upper not in (*settings, *OTHERS):
            near = get_close_matches(upper, settings, 1)
            hint = f"; did you mean {near[0]}?" if near else "."
            yield f"{name}: there is no such setting{hint} See docs/settings.md."
