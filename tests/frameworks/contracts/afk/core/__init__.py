"""The runner and the interaction provider."""

from afk.core.interaction import HeadlessInteractionProvider
from afk.core.runner import Runner, RunnerConfig

__all__ = ["HeadlessInteractionProvider", "Runner", "RunnerConfig"]
