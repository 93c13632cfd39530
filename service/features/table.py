"""The features of the service, one row each, with what the core calls of them.

Their order is the order in which writers add to a commit.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from service.core.store.channels import queue_cards
from service.core.store.connection.commits import Writer
from service.core.store.counters import note_memory
from service.core.store.precedents import note_precedents
from service.core.store.suspensions.facets import file_items
from service.core.store.suspensions.turns import note_tools
from service.core.wiring import Wiring
from service.features.control.drills import plant_scheduled
from service.features.insights.facts import note_facts, note_taken
from service.features.permissions.lessons import note_lessons
from service.features.permissions.ticks import propose_learned
from service.features.rulebook.store import note_rules
from service.features.webhooks.announcements import announce, notify_endpoint


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


FEATURES = (
    Feature("search", writers=(file_items,)),
    Feature("cards", writers=(queue_cards,)),
    Feature("aap", writers=(notify_endpoint,)),
    Feature("rules", writers=(note_rules,)),
    Feature("second looks", writers=(note_taken,)),
    Feature("learning", writers=(note_lessons,), ticks=(Tick(propose_learned, 10, "learning_failed"),)),
    Feature("drills", ticks=(Tick(plant_scheduled, 60, "drill_failed"),)),
    Feature("threads", writers=(note_tools,)),
    Feature("precedents", writers=(note_precedents,)),
    Feature("webhooks", writers=(announce,)),
    Feature("insights", writers=(note_facts,)),
    Feature("memory", writers=(note_memory,)),
)
WRITERS = tuple(writer for feature in FEATURES for writer in feature.writers)
