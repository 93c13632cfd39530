"""What ends a run early."""


class AgentError(Exception):
    """Anything that ends a run."""


class AgentExecutionError(AgentError):
    """A call or an answer that fails the run."""


class AgentBudgetExceededError(AgentError):
    """A limit of the run is passed."""


class AgentCheckpointCorruptionError(AgentError):
    """What was saved of a run cannot be gone on from."""
