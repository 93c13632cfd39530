"""Put the parts of one process together, once, from its settings."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.auth.credentials import Credentials
from service.auth.reviewers import Reviewers
from service.auth.revocations import RevocationCache
from service.delivery.http import Posts
from service.desk.desk import Desk
from service.desk.freezing import Freezes
from service.http.waiters import Waiters
from service.inspection import Inspections
from service.logs import Trouble
from service.policy.loading import Rulebook, rulebook_of
from service.policy.publishing import RulesInForce
from service.settings import Settings
from service.store.attempts import Attempts
from service.store.connection.connecting import connect
from service.store.connection.faults import show_address
from service.store.connection.watch import Watch
from service.store.deliveries import Deliveries
from service.store.freezes import FreezeStore
from service.store.idempotency import Replays
from service.store.instances import Instances
from service.store.people import People
from service.store.rules import RuleStore
from service.store.runs.external_events import ExternalEvents
from service.store.runs.retention import Retention
from service.store.runs.runs import Runs
from service.store.runs.trails import Trails
from service.store.suspensions.intake import Intake
from service.store.suspensions.reading import Readings
from service.store.suspensions.saving import Suspensions
from service.store.suspensions.schedule import Schedule

_COLLECT_AFTER = 50_000


@dataclass(frozen=True)
class Wiring:
    """Everything a process needs to serve, drive or watch runs."""

    settings: Settings
    rulebook: Rulebook
    rules: RulesInForce
    desk: Desk
    runs: Runs
    external_events: ExternalEvents
    schedule: Schedule
    watch: Watch
    reviewers: Reviewers
    credentials: Credentials
    replays: Replays
    freezes: Freezes
    retention: Retention
    revocation_cache: RevocationCache
    instances: Instances
    deliveries: Deliveries
    attempts: Attempts
    posts: Posts
    waiters: Waiters
    intake: Intake
    inspections: Inspections
    trails: Trails


def settle_memory() -> None:
    """Leave all that is there for good out of later garbage collections, and have those come less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 20)


@asynccontextmanager
async def assemble(settings: Settings) -> AsyncIterator[Wiring]:
    """Connect to the store and build the parts on it; close the connections in the end."""
    redis = connect(settings.store_url)
    blocking = connect(settings.store_url, blocking=True)
    rulebook = rulebook_of(settings.policy)
    readings = Readings()
    rules = RulesInForce(RuleStore(redis), rulebook, settings.policy)
    runs = Runs(redis, readings)
    trails = Trails(redis, readings)
    people = People(redis)
    intake = Intake(redis, settings)
    trouble, address = Trouble("store_away"), show_address(settings.store_url)
    posts = Posts(loopback=settings.aap_allow_loopback)
    freezes = Freezes(FreezeStore(redis))
    suspensions, schedule = Suspensions(redis, freezes.mark_ms, readings), Schedule(redis)
    reviewers = Reviewers(people, Attempts(redis), idle_s=settings.session_idle_s, max_s=settings.session_max_s)
    try:
        yield Wiring(
            settings=settings,
            rulebook=rulebook,
            rules=rules,
            desk=Desk(suspensions, runs, rules.policy, freezes.known, freezes.sure_until_ms, intake),
            runs=runs,
            external_events=ExternalEvents(redis),
            schedule=schedule,
            watch=Watch(blocking, on_lost=lambda error: trouble.note(error, address=address), on_found=trouble.over),
            reviewers=reviewers,
            credentials=Credentials(people, reviewers),
            replays=Replays(redis),
            freezes=freezes,
            retention=Retention(redis, readings),
            revocation_cache=RevocationCache(people),
            instances=Instances(redis),
            deliveries=Deliveries(redis),
            attempts=Attempts(redis),
            posts=posts,
            waiters=Waiters(settings.waits_per_key),
            intake=intake,
            inspections=Inspections(suspensions, runs, trails, schedule, readings),
            trails=trails,
        )
    finally:
        suspensions.close()
        schedule.close()
        intake.close()
        await posts.aclose()
        await redis.aclose()
        await blocking.aclose()
