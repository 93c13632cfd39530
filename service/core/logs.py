"""Logs as JSON lines on standard output, and the start of a program with valid settings."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from traceback import walk_tb
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from sayso.core.clock import monotonic_ms
from sayso.errors import FrameworkFault, SaysoError
from service.core.settings import LAUNCHED_FROM, InvalidSettings, Settings, list_unknown, load, variable_of
from service.core.settings.secrets import SECRETS, erase
from service.core.settings.tenants import find_desk

LOGGED_AGAIN_MS = 60_000  # how often a lasting fault is logged
_MOST_FRAMES = 30  # of an exception, the innermost ones
_MOST_CAUSES = 10
_TRACEBACK = "Traceback (most recent call last):"
log = structlog.get_logger()


def configure_logs(process: str, level: str = "info") -> None:
    """Write JSON lines alone: of Sayso and its libraries, of warnings, and of exceptions that nobody catches."""

    def name_process(_: object, __: str, line: EventDict) -> EventDict:
        return {**line, "process": process}

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        name_process,
        describe_exception,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_keep_first_line, *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
    )
    handler = _Lines(sys.stdout)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for library in ("httpx", "httpcore", "urllib3"):  # they log addresses and headers, which may hold a secret
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = lambda _, error, __: _log_uncaught(error)
    sys.unraisablehook = lambda caught: _log_uncaught(caught.exc_value)
    threading.excepthook = lambda caught: _log_uncaught(caught.exc_value)


class _Lines(logging.StreamHandler[TextIO]):
    """Lines on a stream; a line that cannot be formatted is one about that, not a traceback."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's own name
        fault = {"name": record.name, "levelno": logging.ERROR, "levelname": "ERROR", "exc_info": sys.exc_info()}
        with suppress(Exception):
            self.stream.write(self.format(logging.makeLogRecord({**fault, "msg": "line_not_written"})) + "\n")


def _keep_first_line(_: object, __: str, line: EventDict) -> EventDict:
    """Cut the further lines of a library's text: tracebacks, with the messages of their exceptions."""
    first, _, more = str(line["event"]).strip().partition("\n")
    if first == _TRACEBACK:
        first = f"Traceback of {more.splitlines()[-1].partition(':')[0]}"
    return {**line, "event": first}


def describe_exception(_: object, __: str, line: EventDict) -> EventDict:
    """Replace an exception by `error`, `frames` and `causes`, without messages that may hold arguments or secrets."""
    info = line.pop("exc_info", None)
    error = info[1] if isinstance(info, tuple) else sys.exception() if info is True else info
    if not isinstance(error, BaseException):
        return line
    first, *causes = [{"error": _name(link), "frames": _list_frames(link)} for link in _list_chain(error)]
    return {**line, **first, "causes": causes}


def _name(error: BaseException) -> str:
    """Return the type, and the message of Sayso's own errors and of the operating system."""
    is_own = isinstance(error, SaysoError) and not isinstance(error, FrameworkFault)  # which repeats another's
    message = str(error) if is_own else ""
    if isinstance(error, OSError) and error.errno is not None and type(error).__module__ == "builtins":
        message = os.strerror(error.errno)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _list_frames(error: BaseException) -> list[str]:
    frames = [(frame.f_globals.get("__name__"), line, frame.f_code) for frame, line in walk_tb(error.__traceback__)]
    return [f"{module}:{line} {code.co_qualname}" for module, line, code in frames[-_MOST_FRAMES:]]


def _list_chain(error: BaseException) -> list[BaseException]:
    """Return the exception, then its causes and the members of a group."""
    chain = [error]
    for link in chain:
        context = None if link.__suppress_context__ else link.__context__
        members = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        for cause in (link.__cause__ or context, *members):
            if cause is not None and len(chain) <= _MOST_CAUSES and all(cause is not known for known in chain):
                chain.append(cause)
    return chain


def _log_uncaught(error: BaseException | None) -> None:
    if error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        log.critical("uncaught", exc_info=error)


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
            log.warning(self._name, exc_info=error, times=self._times, **facts)

    def over(self) -> None:
        if self._times:
            log.info(f"{self._name}_no_longer", times=self._times)
            self._times, self._logged = 0, ""


def start(
    program: Callable[[Settings], int], sees: Collection[str] = (), *, several: bool = False, process: str = ""
) -> int:
    """Run a program without the `SECRETS` that are not in `sees`; return its exit code, 2 for invalid settings.

    It gets the settings of its tenant, or, to serve `several`, those of the process. With the name of a `process` it
    logs JSON lines from here on; without one it prints sentences.
    """
    if process:
        configure_logs(process)
    try:
        settings = load() if several else find_desk(load())
    except InvalidSettings as error:
        if process:
            log.error("not_started", error=error.message)
        else:
            print(error.message, file=sys.stderr)
        return 2
    if LAUNCHED_FROM not in os.environ:  # the launcher has said it
        for line in list_unknown():
            if process:
                log.warning("setting_unknown", reason=line)
            else:
                print(f"warning: {line}", file=sys.stderr)
    if process:
        logging.getLogger().setLevel(settings.log_level.upper())
    hidden = [name for name in SECRETS if name not in sees]
    erase({variable_of(name) for name in hidden})
    return program(settings.model_copy(update={name: Settings.model_fields[name].default for name in hidden}))
