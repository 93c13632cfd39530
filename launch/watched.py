"""Run one program as a container's only one: `python -m launch.watched service`.

A container is restarted when its first process ends, and not when that hangs or was stopped. This one watches the
program beside it, and ends when the program does, or when it misses too many checks.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from launch.programs import CLOCK, SERVICE
from launch.watches import EVERY_S, Watch, watches_for
from service.settings import Settings
from service.starting import start

PROGRAMS = (SERVICE, CLOCK)
MODULES = {program.name: program.module for program in PROGRAMS}


def keep(command: Sequence[str], watch: Watch, every_s: float = EVERY_S) -> int:
    """Run the command until it ends or misses too many checks; return its exit code, or 1 when it was killed."""
    child = subprocess.Popen(command)

    def pass_on(signum: int, _frame: FrameType | None) -> None:
        child.send_signal(signum)

    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, pass_on)
    while True:
        try:
            return child.wait(every_s)
        except subprocess.TimeoutExpired:
            if watch.check():
                continue
        print(f"{' '.join(command[1:])} does not answer any more and is killed.", file=sys.stderr)
        child.kill()
        child.wait()
        return 1


def main(settings: Settings) -> int:
    """Run the program that the command line names."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in MODULES:
        print(f"Say which program to run: {' or '.join(MODULES)}.", file=sys.stderr)
        return 2
    return keep([sys.executable, "-m", MODULES[name]], watches_for(settings, PROGRAMS)[name])


if __name__ == "__main__":
    raise SystemExit(start(main, sees=SERVICE.sees))
