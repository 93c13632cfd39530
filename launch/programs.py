"""The programs of a running Sayso, one row each, for `make up` and the compose file."""

from dataclasses import dataclass

from service.core.settings import Settings, variable_of
from service.core.starting import SECRETS


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
SETUP = Program("setup", "service.setup", sees=("admin_password", "agent_key"))
"""Runs at every start: creates the first admin and the demo agent's key if they are missing."""


def programs_for(settings: Settings) -> tuple[Program, ...]:
    """Return the programs for these settings. The server is left out if a store is configured."""
    return (
        *(() if settings.redis_url else (SERVER,)),
        SERVICE,
        Program(WORKER.name, WORKER.module, count=settings.workers),
        CLOCK,
        *((DEMO_MODEL,) if settings.runs_demo_model else ()),
    )
