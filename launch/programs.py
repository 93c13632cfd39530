"""The programs of a running Sayso, one row each, and health checks of those that can hang without ending."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from launch.checks import is_clock_ticking, is_healthy
from service.core.settings import Settings, variable_of
from service.core.settings.secrets import SECRETS
from service.core.settings.tenants import list_desks


@dataclass(frozen=True)
class Program:
    """A program to keep running: `count` processes of `python -m <module>`.

    It gets only the secret settings in `sees`. A `niceness` above 0 gives way to the other programs, as `nice` does.
    """

    name: str
    module: str
    count: int = 1
    sees: tuple[str, ...] = ()
    niceness: int = 0
    tenant: str = ""  # the one that it serves, where there are several

    @property
    def hidden(self) -> tuple[str, ...]:
        """The environment variables of secrets that this program must not get."""
        return tuple(variable_of(name) for name in SECRETS if name not in self.sees)


NICENESS = 5
"""Of the service: under full load a worker gets three times its share, so that calls start that were decided."""

SERVER = Program("server", "launch.server")
SERVICE = Program("service", "service", sees=("metrics_token", "webhook_secret"), niceness=NICENESS)
WORKER = Program("worker", "workers")
CLOCK = Program("clock", "workers.clock")
DEMO_MODEL = Program("demo-model", "demo.model")
SETUP = Program("setup", "service.setup", sees=("admin_password", "key"))
"""Runs at every start: creates the first admin and the demo agent's key if they are missing."""


def programs_for(settings: Settings) -> tuple[Program, ...]:
    """Return the programs for these settings. The server is left out if a store is configured."""
    return (
        *(() if settings.redis_url else (SERVER,)),
        SERVICE,
        *chain.from_iterable(_programs_of(settings, tenant) for tenant in _list_tenants(settings)),
        *((DEMO_MODEL,) if settings.runs_demo_model else ()),
    )


def _list_tenants(settings: Settings) -> tuple[str, ...]:
    """Return the tenants that need a worker and a clock each; one without a name where there is no file of them."""
    return tuple(list_desks(settings)) if settings.tenants is not None else ("",)


def _programs_of(settings: Settings, tenant: str) -> tuple[Program, ...]:
    end = f"-{tenant}" if tenant else ""
    worker = replace(WORKER, name=WORKER.name + end, count=settings.workers, tenant=tenant)
    return worker, replace(CLOCK, name=CLOCK.name + end, tenant=tenant)


CHECK_EVERY_S = 5.0
"""Seconds between two checks of a program."""

SERVICE_MISSES = 3
CLOCK_MISSES = 12
"""One minute: deadlines hold without a clock, and the store may be unreachable for a while."""

START_MISSES = 24
"""The limit until the first successful check."""


class Watch:
    """Counts consecutive failed checks of a program."""

    def __init__(self, works: Callable[[], bool], misses: int) -> None:
        self._works = works
        self._misses = misses
        self.begin()

    def begin(self) -> None:
        """Reset the count after a start of the program."""
        self._allowed = START_MISSES
        self._missed = 0

    def check(self) -> bool:
        """Check once. Return False if the program must be restarted."""
        if self._works():
            self._missed, self._allowed = 0, self._misses
            return True
        self._missed += 1
        if self._missed < self._allowed:
            return True
        self.begin()
        return False


def watches_for(settings: Settings, programs: Iterable[Program]) -> dict[str, Watch]:
    """Return a watch for each program that has a check, by name."""
    watches = {}
    for program in programs:
        if program.name == SERVICE.name:
            watches[program.name] = Watch(partial(is_healthy, settings.host, settings.port), SERVICE_MISSES)
        elif program.name.partition("-")[0] == CLOCK.name:
            desk = list_desks(settings)[program.tenant] if program.tenant else settings
            watches[program.name] = Watch(partial(is_clock_ticking, desk.store_url, desk.tenant), CLOCK_MISSES)
    return watches
