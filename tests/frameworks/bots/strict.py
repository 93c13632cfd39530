"""The bot of the module `BOT_MODULE` as two more agents, whose runs a denial ends."""

import os
from dataclasses import replace
from importlib import import_module

from sayso.runner.protocol import FrameworkAgent

_bot: FrameworkAgent = import_module(os.environ["BOT_MODULE"]).bot
degrading = replace(_bot, name="degrading", approval_denial_policy="degrade")
failing = replace(_bot, name="failing", approval_denial_policy="fail")
