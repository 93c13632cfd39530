"""List the programs that make up a running Sayso: one row each, the same for `make up` and for the compose file."""

from dataclasses import dataclass

from service.settings import Settings


@dataclass(frozen=True)
class Program:
    """A program to keep running: `python -m <module>`, as many times as `count` says."""

    name: str
    module: str
    count: int = 1


SERVER = Program("server", "launch.server")
SERVICE = Program("service", "service")
WORKER = Program("worker", "workers")
CLOCK = Program("clock", "workers.clock")
DEMO_MODEL = Program("demo-model", "demo.model")
SETUP = Program("setup", "service.setup")
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
