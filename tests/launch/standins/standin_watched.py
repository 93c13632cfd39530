"""Stand in for `python -m launch.watched`, with the stand-in of the service and checks in quick succession."""

import sys

from launch.watched import PROGRAMS, keep
from launch.watches import watches_for
from service.settings import load

if __name__ == "__main__":
    raise SystemExit(keep([sys.executable, "-m", "standin_service"], watches_for(load(), PROGRAMS)["service"], 0.1))
