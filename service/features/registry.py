"""The features of the service, one row each, in the order in which they add to a commit."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from service.core.settings import Settings
from service.core.store.announcements import announce, notify_endpoint
from service.core.store.channels import queue_cards
from service.core.store.connection.commits import Observer, Writer
from service.core.store.counters import write_counters
from service.core.store.precedents import note_precedents
from service.core.store.rules import note_rules
from service.core.store.runs.runs import note_tools
from service.core.store.suspensions.texts import file_items
from service.core.store.tenants import Cleanup, Companion, Deletion, Hooks, TenantStore
from service.core.wiring import Wiring
from service.features.archive.desk import RunArchive, cut_erased, note_erased
from service.features.archive.keeping import keep_archive
from service.features.control.drills import plant_scheduled
from service.features.control.store import forget_drawn
from service.features.discussions.store import delete_discussion
from service.features.evidence.keeping import keep_checkpoints
from service.features.insights.facts import note_facts, note_taken
from service.features.insights.totals import note_totals
from service.features.passkeys.deciding import prove_decision
from service.features.permissions.desk import Permissions, propose_learned
from service.features.permissions.store import note_lessons
from service.features.tracing.exporting import observe_spans
from service.features.whatif.shadows import CandidateInShadow
from service.features.whatif.store import delete_replays


class Tick(NamedTuple):
    """A step that the clock's process repeats every `every_s` seconds; its errors are logged under `failure`."""

    step: Callable[[Wiring], Awaitable[object]]
    every_s: float
    failure: str


class Feature(NamedTuple):
    """A feature's row: what it adds to the core, as `Hooks` describes it, and the ticks of the clock's process.

    `retention` is a pass of the hourly job, with the time, ms; it returns whether more is to do. `observe` yields what
    learns of saved changes in one process.
    """

    name: str
    writers: tuple[Writer, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    cleanups: tuple[Cleanup, ...] = ()
    companions: tuple[Callable[[TenantStore], Companion], ...] = ()
    ticks: tuple[Tick, ...] = ()
    retention: Callable[[Wiring, int], Awaitable[bool]] | None = None
    observe: Callable[[Settings], AbstractAsyncContextManager[tuple[Observer, ...]]] | None = None


FEATURES = (
    Feature("search", writers=(file_items,)),
    Feature("cards", writers=(queue_cards,)),
    Feature("aap", writers=(notify_endpoint,)),
    Feature("rules", writers=(note_rules,)),
    Feature("discussions", deletions=(delete_discussion,)),
    Feature("second looks", writers=(note_taken,), deletions=(forget_drawn,)),
    Feature("whatif", cleanups=(delete_replays,), companions=(CandidateInShadow,)),
    Feature("learning", writers=(note_lessons,), ticks=(Tick(propose_learned, 10, "learning_failed"),)),
    Feature("drills", ticks=(Tick(plant_scheduled, 60, "drill_failed"),)),
    Feature("threads", writers=(note_tools,)),
    Feature("precedents", writers=(note_precedents,)),
    Feature("webhooks", writers=(announce,)),
    Feature("insights", writers=(note_facts, note_totals)),
    Feature("evidence", ticks=(Tick(keep_checkpoints, 10, "checkpoint_failed"),)),
    Feature("archive", deletions=(note_erased,), cleanups=(cut_erased,), retention=keep_archive),
    Feature("counters", writers=(write_counters,)),
    Feature("tracing", observe=observe_spans),
)
HOOKS = Hooks(
    consequences=Permissions(),
    prove=prove_decision,
    writers=tuple(writer for feature in FEATURES for writer in feature.writers),
    deletions=tuple(deletion for feature in FEATURES for deletion in feature.deletions),
    cleanups=tuple(cleanup for feature in FEATURES for cleanup in feature.cleanups),
    archive=RunArchive,
    companions=tuple(companion for feature in FEATURES for companion in feature.companions),
)
