"""Start a program with valid settings."""

import os
import sys
from collections.abc import Callable, Collection

from service.core.settings import LAUNCHED_FROM, InvalidSettings, Settings, list_unknown, load, variable_of

SECRETS = ("admin_password", "agent_key", "metrics_token", "webhook_secret")
"""Settings that only some programs may see: tools run in workers and can read the environment."""


def start(program: Callable[[Settings], int], sees: Collection[str] = ()) -> int:
    """Run a program without the `SECRETS` that are not in `sees`; return its exit code, 2 for invalid settings."""
    try:
        settings = load()
    except InvalidSettings as error:
        print(error.message, file=sys.stderr)
        return 2
    if LAUNCHED_FROM not in os.environ:  # the launcher has said it
        print(*(f"warning: {line}\n" for line in list_unknown()), sep="", end="", file=sys.stderr)
    return program(_hide(settings, [name for name in SECRETS if name not in sees]))


def _hide(settings: Settings, names: Collection[str]) -> Settings:
    variables = {variable_of(name) for name in names}
    for variable in [name for name in os.environ if name.upper() in variables]:
        del os.environ[variable]
    return settings.model_copy(update={name: Settings.model_fields[name].default for name in names})
