"""Hooks: what a feature registers, so that the service calls it without knowing it."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from service.store.writers import Writer
from service.wiring import Wiring


class Tick(NamedTuple):
    """A step that the clock's process repeats every `every_s` seconds; its errors are logged under `failure`."""

    step: Callable[[Wiring], Awaitable[object]]
    every_s: float
    failure: str


class Feature(NamedTuple):
    """A feature's row: the writers that add to each commit, and the ticks of the clock's process."""

    name: str
    writers: tuple[Writer, ...] = ()
    ticks: tuple[Tick, ...] = ()
