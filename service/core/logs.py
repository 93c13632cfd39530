"""Logs as JSON lines on standard output, and the start of a program with valid settings."""

import logging
import os
import sys
from collections.abc import Callable, Collection

import structlog

from sayso.core.clock import monotonic_ms
from service.core.settings import LAUNCHED_FROM, InvalidSettings, Settings, list_unknown, load, variable_of
from service.core.settings.secrets import SECRETS, erase
from service.core.settings.tenants import find_desk

LOGGED_AGAIN_MS = 60_000  # how often a lasting fault is logged
log = structlog.get_logger()


def configure_logs(level: str) -> None:
    """Set up logging of this process and its libraries."""
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
    for library in ("httpx", "httpcore", "urllib3"):  # they log addresses and headers, which may hold a secret
        logging.getLogger(library).setLevel(logging.WARNING)


class Trouble:
    """A recurring fault: logged when it begins, changes and ends, and once a minute while it lasts."""

    def __init__(self, name: str, again_ms: int = LOGGED_AGAIN_MS) -> None:
        self._name, self._again_ms = name, again_ms
        self._times, self._logged, self._logged_at_ms = 0, "", 0.0

    def note(self, error: Exception, **facts: str) -> None:
        self._times += 1
        cause, at_ms = f"{type(error).__name__}: {error}", monotonic_ms()
        if cause != self._logged or at_ms - self._logged_at_ms >= self._again_ms:
            self._logged, self._logged_at_ms = cause, at_ms
            log.warning(self._name, error=cause, times=self._times, **facts)

    def over(self) -> None:
        if self._times:
            log.info(f"{self._name}_no_longer", times=self._times)
            self._times, self._logged = 0, ""


def start(program: Callable[[Settings], int], sees: Collection[str] = (), *, several: bool = False) -> int:
    """Run a program without the `SECRETS` that are not in `sees`; return its exit code, 2 for invalid settings.

    It gets the settings of its tenant, or, to serve `several`, those of the process.
    """
    try:
        settings = load() if several else find_desk(load())
    except InvalidSettings as error:
        print(error.message, file=sys.stderr)
        return 2
    if LAUNCHED_FROM not in os.environ:  # the launcher has said it
        print(*(f"warning: {line}\n" for line in list_unknown()), sep="", end="", file=sys.stderr)
    hidden = [name for name in SECRETS if name not in sees]
    erase({variable_of(name) for name in hidden})
    return program(settings.model_copy(update={name: Settings.model_fields[name].default for name in hidden}))
