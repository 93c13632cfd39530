"""Stand-in for `python -m launch` with the programs on the command line."""

import sys

from launch.programs import SERVER, SERVICE, SETUP, Program
from launch.stacks import run
from service.core.settings import load

if __name__ == "__main__":
    sees = {SERVICE.name: SERVICE.sees}
    others = [Program(name, f"standin_{name}", sees=sees.get(name, ())) for name in sys.argv[1:]]
    setup = Program("setup", "standin_setup", sees=SETUP.sees)
    raise SystemExit(run(load(), [SERVER, *others], setup, watch_every_s=0.5))
