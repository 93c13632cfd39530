"""Start a program of Sayso's: with settings that can be used, or not at all."""

import sys
from collections.abc import Callable

from service.settings import InvalidSettings, Settings, load


def start(program: Callable[[Settings], int]) -> int:
    """Run a program with the settings of this process and return what it does.

    For settings that cannot be used it is 2, with a line for each on the standard error.
    """
    try:
        settings = load()
    except InvalidSettings as error:
        print(error.message, file=sys.stderr)
        return 2
    return program(settings)
