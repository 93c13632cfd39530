"""Stand-in for `python -m launch.watched` with frequent checks of the stand-in service."""

import sys

from launch.programs import watches_for
from launch.watched import PROGRAMS, run_watched
from service.core.settings import load

if __name__ == "__main__":
    watch = watches_for(load(), PROGRAMS)["service"]
    raise SystemExit(run_watched([sys.executable, "-m", "standin_service"], watch, 0.1))
