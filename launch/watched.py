"""Runs and watches the one program of a container: `python -m launch.watched service`.

A container restarts when its first process ends, not when it hangs. This process ends when the program ends or misses
too many checks.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from launch.programs import CHECK_EVERY_S, CLOCK, SERVICE, Watch, watches_for
from service.core.logs import log, start
from service.core.settings import Settings

PROGRAMS = (SERVICE, CLOCK)
MODULES = {program.name: program.module for program in PROGRAMS}


def run_watched(command: Sequence[str], watch: Watch, every_s: float = CHECK_EVERY_S) -> int:
    """Run the command until it ends or misses too many checks. Return its exit code, or 1 if it was killed."""
    child = subprocess.Popen(command)

    def forward(signum: int, _frame: FrameType | None) -> None:
        child.send_signal(signum)

    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, forward)
    while True:
        try:
            return child.wait(every_s)
        except subprocess.TimeoutExpired:
            if watch.check():
                continue
        log.error("program_killed", reason=f"{' '.join(command[1:])} no longer responds.")
        child.kill()
        child.wait()
        return 1


def main(settings: Settings) -> int:
    """Run the program named on the command line."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in MODULES:
        print(f"Name the program to run: {' or '.join(MODULES)}.", file=sys.stderr)
        return 2
    return run_watched([sys.executable, "-m", MODULES[name]], watches_for(settings, PROGRAMS)[name])


if __name__ == "__main__":
    raise SystemExit(start(main, sees=SERVICE.sees, process="watch"))
