"""Write one JSON line an event to standard output, for whatever collects logs."""

import logging
import sys

import structlog

from sayso.clock import monotonic_ms

TOLD_AGAIN_MS = 60_000
"""How often a trouble is told while it lasts."""

log = structlog.get_logger()


def configure_logs(level: str) -> None:
    """Set up logging of this process, our own lines and those of libraries alike."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


class Trouble:
    """What fails again and again: told when it begins, once a minute while it lasts, and when it is over.

    Something else that goes wrong meanwhile is told at once.
    """

    def __init__(self, name: str, again_ms: int = TOLD_AGAIN_MS) -> None:
        self._name = name
        self._again_ms = again_ms
        self._times = 0
        self._told = ""
        self._told_at_ms = 0.0

    def note(self, error: Exception, **facts: str) -> None:
        """Note that it failed once more."""
        self._times += 1
        told, at_ms = f"{type(error).__name__}: {error}", monotonic_ms()
        if told != self._told or at_ms - self._told_at_ms >= self._again_ms:
            self._told, self._told_at_ms = told, at_ms
            log.warning(self._name, error=told, times=self._times, **facts)

    def over(self) -> None:
        """Note that it did not fail."""
        if self._times:
            log.info(f"{self._name}_no_longer", times=self._times)
            self._times, self._told = 0, ""
