"""The parts of one process, assembled once from its settings, and the parts that serve one tenant."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from service.core.auth.activity import ActivityLog
from service.core.auth.api_keys import ApiKeys, RevocationCache
from service.core.auth.contacts import Contacts
from service.core.auth.credentials import Credentials
from service.core.auth.duty import Duty
from service.core.auth.groups import Groups
from service.core.auth.passwords import Passwords
from service.core.auth.person_tokens import PersonTokens
from service.core.auth.reviewers import Reviewers, hash_token
from service.core.concurrency import Waiters
from service.core.desk.desk import Desk
from service.core.desk.freezing import Freezes
from service.core.outgoing.assessors import Assessors, assessors_of, check_receivers
from service.core.outgoing.http import Posts
from service.core.policy.publishing import Rulebook, RulesInForce, rulebook_of
from service.core.settings import Settings
from service.core.store.activity import ActivityStore
from service.core.store.attempts import Attempts, Replays
from service.core.store.connection.watch import Watch
from service.core.store.directory import ContactStore, DutyStore, GroupStore
from service.core.store.freezes import FreezeStore
from service.core.store.inspection import Inspections
from service.core.store.instances import Instance, Instances
from service.core.store.people import People, Tokens
from service.core.store.rules import RuleStore
from service.core.store.runs.retention import Retention
from service.core.store.runs.runs import Runs
from service.core.store.runs.trails import Trails
from service.core.store.suspensions.commits import Intake
from service.core.store.suspensions.saving import Suspensions
from service.core.store.suspensions.schedule import Schedule
from service.core.store.tenants import Connections, Hooks, TenantStore

_COLLECT_AFTER = 20_000
Part = TypeVar("Part")


@dataclass(frozen=True)
class Wiring:
    """The parts that serve one tenant. Settings, connections and credentials are the process's own."""

    settings: Settings
    rulebook: Rulebook
    watch: Watch
    credentials: Credentials
    attempts: Attempts
    posts: Posts
    tenant: str
    store: TenantStore
    rules: RulesInForce
    desk: Desk
    runs: Runs
    schedule: Schedule
    reviewers: Reviewers
    api_keys: ApiKeys
    replays: Replays
    freezes: Freezes
    retention: Retention
    revocation_cache: RevocationCache
    groups: Groups
    contacts: Contacts
    duty: Duty
    waiters: Waiters
    intake: Intake
    inspections: Inspections
    trails: Trails
    _parts: dict[Callable[..., object], object] = field(default_factory=dict)

    def part(self, kind: Callable[[TenantStore], Part]) -> Part:
        """Return this tenant's share of a feature; it is built from the store when it is first needed."""
        if kind not in self._parts:
            self._parts[kind] = kind(self.store)
        return cast(Part, self._parts[kind])

    def feature(self, kind: Callable[["Wiring"], Part]) -> Part:
        """Return this tenant's operations of a feature; they are built from these parts when they are first needed."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return cast(Part, self._parts[kind])

    @property
    def activity(self) -> ActivityLog:
        """The activity log, in which contacts record their links."""
        return self.contacts.activity


class Process:
    """The parts of one process, and the `Wiring` of each tenant, built when it is first needed."""

    def __init__(self, settings: Settings, connections: Connections, watch: Watch, hooks: Hooks) -> None:
        self.settings = settings
        self.watch = watch
        self.rulebook = rulebook_of(settings.policy)
        self.posts = Posts(loopback=settings.aap_allow_loopback, internal=settings.receivers)
        plans = assessors_of(settings.assessors)
        check_receivers(plans, settings.receivers, loopback=settings.aap_allow_loopback)
        self._assessors = Assessors(plans, self.posts)
        self._connections = connections
        self._hooks = hooks
        self._attempts = Attempts(connections.redis)
        self._passwords = Passwords()
        self._tokens = Tokens(connections)
        self.credentials = Credentials(
            self._tokens,
            lambda name: self.tenant(name).reviewers,
            idle_s=settings.session_idle_s,
            person_tokens=PersonTokens(settings.token_issuers),
            refresher=connections.refresher,
        )
        self._tenants: dict[str, Wiring] = {}

    def tenant(self, name: str) -> Wiring:
        """Return the parts that serve a tenant. The name comes from a credential, never from a caller."""
        wiring = self._tenants.get(name)
        if wiring is None:
            wiring = self._tenants[name] = self._build(name, TenantStore(self._connections, name, self._hooks))
        return wiring

    async def find_instance(self, token: str) -> Instance | None:
        """Return the instance of the Agent Approval Protocol that holds this token, or None."""
        token_hash = hash_token(token)
        key = await self._tokens.find_instance(token_hash)
        if key is None:
            return None
        instance = await self.tenant(key.tenant).part(Instances).read(key.instance_id)
        return instance if instance is not None and instance.credential_hash == token_hash else None

    def _build(self, tenant: str, store: TenantStore) -> Wiring:
        settings, attempts, tokens = self.settings, self._attempts, self._tokens
        runs, trails, people, duty = Runs(store), Trails(store), People(store), DutyStore(store)
        refresher, companions = store.connections.refresher, [make(store) for make in store.hooks.companions]
        freezes, intake = Freezes(FreezeStore(store), refresher), Intake(store, settings)
        suspensions = Suspensions(store, freezes.mark_ms, self._assessors.ask)
        rules = RulesInForce(RuleStore(store), self.rulebook, settings.policy, settings.policy_attestations, companions)
        known, sure, environment = freezes.known, freezes.sure_until_ms, settings.environment
        return Wiring(
            settings=settings,
            rulebook=self.rulebook,
            watch=self.watch,
            credentials=self.credentials,
            attempts=attempts,
            posts=self.posts,
            tenant=tenant,
            store=store,
            rules=rules,
            desk=Desk(suspensions, runs, rules.policy, known, sure, intake, attempts, environment),
            runs=runs,
            schedule=Schedule(store),
            reviewers=Reviewers(tenant, people, duty, tokens, attempts, self._passwords, settings, refresher),
            api_keys=ApiKeys(tenant, people, tokens),
            replays=Replays(store),
            freezes=freezes,
            retention=Retention(store),
            revocation_cache=RevocationCache(people, refresher),
            groups=Groups(GroupStore(store), people),
            contacts=Contacts(tenant, ContactStore(store), people, attempts, ActivityLog(ActivityStore(store))),
            duty=Duty(duty, people),
            waiters=Waiters(settings.waits_per_key),
            intake=intake,
            inspections=Inspections(suspensions, runs, trails, Schedule(store), store.readings),
            trails=trails,
        )


def settle_memory() -> None:
    """Exclude everything that exists now from later garbage collections, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 5, 200)
