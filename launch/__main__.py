"""`make up`: run Sayso on this machine until Ctrl-C."""

import sys

from launch.programs import SETUP, programs_for
from launch.stacks import run
from service.settings import InvalidSettings, load


def main() -> int:
    """Run everything the settings ask for."""
    try:
        settings = load()
    except InvalidSettings as error:
        print(error.message, file=sys.stderr)
        return 2
    return run(settings, programs_for(settings), SETUP)


if __name__ == "__main__":
    raise SystemExit(main())
