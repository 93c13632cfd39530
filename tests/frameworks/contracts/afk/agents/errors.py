"""Errors that end a run early."""


class AgentError(Exception):
    """Anything that ends a run."""


class AgentExecutionError(AgentError):
    """A call or an answer that fails the run."""


class AgentRetryableError(AgentExecutionError):
    """A failure that may pass."""


class AgentCircuitOpenError(AgentExecutionError):
    """What failed too often is left alone for a while."""


class AgentLoopLimitError(AgentExecutionError):
    """The run has taken too many steps."""


class AgentBudgetExceededError(AgentExecutionError):
    """A limit of the run is passed."""


class AgentCheckpointCorruptionError(AgentExecutionError):
    """What was saved of a run cannot be gone on from."""
