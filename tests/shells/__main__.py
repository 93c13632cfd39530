"""`make fuzz COUNT=100000 SEED=1`: compare random shell texts with what bash and dash do with them.

The exit code is 0 without differences. Otherwise it is 1, and each difference is printed with its text.
"""

import os
import random
import sys
import tempfile
from pathlib import Path

from tests.shells.comparing import compare
from tests.shells.grammar import Grammar
from tests.shells.sandbox import BASH, DASH, Sandbox

TEXTS = 1_000
"""How many texts share a folder."""


def main() -> int:
    """Compare as many texts as the environment says, and return the exit code."""
    if BASH is None:
        print("bash is missing; install it, then try again.", file=sys.stderr)
        return 2
    count = int(os.environ.get("COUNT") or 20_000)
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    shells = [one for one in (BASH, DASH) if one is not None]
    print(f"{count} texts, seed {seed}, in {', '.join(shells)}.", flush=True)
    grammar, read, failed = Grammar(seed), 0, 0
    for begin in range(0, count, TEXTS):
        texts = [grammar.make() for _ in range(min(TEXTS, count - begin))]
        with tempfile.TemporaryDirectory(prefix="sayso-fuzz-") as folder:
            compared = compare(texts, Sandbox(Path(folder)), shells)
        read += compared.read
        failed += len(compared.differences)
        for one in compared.differences:
            print(f"{one.shell}: {one.text!r}: {one.problem}", flush=True)
    print(f"{read} of {count} texts were read and run; {failed} differences.")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
