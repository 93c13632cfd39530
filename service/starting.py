"""Start a program of Sayso's: with settings that can be used, or not at all."""

import os
import sys
from collections.abc import Callable, Collection

from service.settings import InvalidSettings, Settings, load, variable_of

SECRETS = ("admin_password", "agent_key", "webhook_secret")
"""Settings that only the program they are made for may see: tools run in workers, and read their environment."""


def start(program: Callable[[Settings], int], sees: Collection[str] = ()) -> int:
    """Run a program with the settings of this process and return what it does.

    Of the `SECRETS` it sees those it names; the others are gone from the settings and from the environment.
    For settings that cannot be used it is 2, with a line for each on the standard error.
    """
    try:
        settings = load()
    except InvalidSettings as error:
        print(error.message, file=sys.stderr)
        return 2
    return program(_hide(settings, [name for name in SECRETS if name not in sees]))


def _hide(settings: Settings, names: Collection[str]) -> Settings:
    variables = {variable_of(name) for name in names}
    for variable in [one for one in os.environ if one.upper() in variables]:
        del os.environ[variable]
    return settings.model_copy(update={name: Settings.model_fields[name].default for name in names})
