"""Stand in for `python -m launch`, with the programs named in the command line."""

import sys

from launch.programs import SERVER, Program
from launch.stacks import run
from service.settings import load

if __name__ == "__main__":
    others = [Program(name, f"standin_{name}") for name in sys.argv[1:]]
    raise SystemExit(run(load(), [SERVER, *others], Program("setup", "standin_setup")))
