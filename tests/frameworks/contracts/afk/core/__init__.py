"""The runner and what it asks."""

from afk.core.interaction import HeadlessInteractionProvider
from afk.core.runner import Runner, RunnerConfig

__all__ = ["HeadlessInteractionProvider", "Runner", "RunnerConfig"]
