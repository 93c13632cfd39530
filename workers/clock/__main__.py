"""Run the clock: `python -m workers.clock`."""

import sys

from service.core.logs import start
from workers.clock.running import main

sys.exit(start(main, process="clock"))
