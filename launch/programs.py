"""List the programs that make up a running Sayso: one row each, the same for `make up` and for the compose file."""

from dataclasses import dataclass

from service.settings import Settings, variable_of
from service.starting import SECRETS


@dataclass(frozen=True)
class Program:
    """A program to keep running: `python -m <module>`, as many times as `count` says.

    Of the secret settings it gets those in `sees` alone.
    """

    name: str
    module: str
    count: int = 1
    sees: tuple[str, ...] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The environment variables of secrets that are not for this program."""
        return tuple(variable_of(name) for name in SECRETS if name not in self.sees)


SERVER = Program("server", "launch.server")
SERVICE = Program("service", "service", sees=("webhook_secret",))
WORKER = Program("worker", "workers")
CLOCK = Program("clock", "workers.clock")
DEMO_MODEL = Program("demo-model", "demo.model")
SETUP = Program("setup", "service.setup", sees=("admin_password", "agent_key"))
"""Runs once at every start: makes the first admin and the demo agent's key if they are not there."""


def programs_for(settings: Settings) -> tuple[Program, ...]:
    """Return the programs that these settings ask for; without the server where there is one already."""
    return (
        *(() if settings.redis_url else (SERVER,)),
        SERVICE,
        Program(WORKER.name, WORKER.module, count=settings.workers),
        CLOCK,
        *((DEMO_MODEL,) if settings.runs_demo_model else ()),
    )
