"""The parts of a tenant's desk in one process, assembled once from its settings."""

import gc
from collections.abc import Callable
from functools import cached_property, partial
from typing import TypeVar, cast

from sayso.core.records.freezes import Loss
from service.core.auth.api_keys import ApiKeys, RevocationCache
from service.core.auth.contacts import Contacts
from service.core.auth.credentials import Credentials
from service.core.auth.duty import Duty
from service.core.auth.groups import Groups
from service.core.auth.passwords import Passwords
from service.core.auth.person_tokens import PersonTokens
from service.core.auth.providers import Providers
from service.core.auth.reviewers import Reviewers, hash_token
from service.core.auth.roles import Roles
from service.core.cache import Cache
from service.core.concurrency import Waiters
from service.core.desk.desk import Desk
from service.core.desk.freezing import Freezes
from service.core.desk.recovering import Recovery
from service.core.outgoing.assessors import Assessors, assessors_of, check_receivers
from service.core.outgoing.connections import check_url
from service.core.outgoing.http import Posts
from service.core.policy.publishing import RulesInForce, rulebook_of
from service.core.settings import Settings
from service.core.store.activity import ActivityLog, ActivityStore
from service.core.store.attempts import Attempts, Replays
from service.core.store.connection.watch import Watch
from service.core.store.directory import ContactStore, DutyStore, EmergencyStore, GroupStore, RoleStore
from service.core.store.freezes import FreezeStore
from service.core.store.inspection import Inspections, Trails
from service.core.store.instances import Instance, Instances
from service.core.store.people import People, Tokens
from service.core.store.rules import RuleStore
from service.core.store.runs.retention import Retention
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.commits import Intake
from service.core.store.suspensions.saving import Suspensions
from service.core.store.suspensions.schedule import Schedule
from service.core.store.tenants import Connections, Hooks, TenantStore

_COLLECT_AFTER = 20_000
Part = TypeVar("Part")


def providers_of(settings: Settings) -> Providers:
    """Return the identity providers of the file that the settings name; their addresses are checked like receivers."""
    check = partial(check_url, loopback=settings.aap_allow_loopback, internal=settings.receivers)
    return Providers(settings.sign_in, check)


class Wiring:
    """The parts that serve a tenant. Settings, connections and credentials are those of its desk."""

    def __init__(self, process: "Process", store: TenantStore) -> None:
        settings, tenant, refresher = process.settings, store.keys.tenant, store.connections.refresher
        attempts, tokens, people, duty = process.attempts, process.tokens, People(store), DutyStore(store)
        self.settings, self.tenant, self.store, self.attempts = settings, tenant, store, attempts
        self.rulebook, self.watch, self.posts = process.rulebook, process.watch, process.posts
        self.credentials, self.providers = process.credentials, process.providers
        companions = [make(store) for make in store.hooks.companions]
        needed = settings.policy_attestations
        self.rules = RulesInForce(RuleStore(store), self.rulebook, settings.policy, needed, companions)
        self.freezes, self.runs, self.schedule = Freezes(FreezeStore(store), refresher), Runs(store), Schedule(store)
        self.intake, self.waiters = Intake(store, settings), Waiters(settings.waits_per_key)
        self.desk = Desk(
            Suspensions(store, self.freezes.mark_ms, process.assessors.ask, settings.undo),
            self.runs,
            self.rules.policy,
            self.freezes.known,
            self.freezes.sure_until_ms,
            self.intake,
            attempts,
            partial(self.freezes.check_delivered, settings.checkpoints_required_h),
        )
        self.roles = Roles(RoleStore(store), EmergencyStore(store), refresher)
        absences = Cache(duty.list_absences, refresher)
        sealer, passwords = store.sealer, process.passwords
        self.reviewers = Reviewers(sealer, people, self.roles, absences, tokens, attempts, passwords, settings)
        self.api_keys, self.groups = ApiKeys(tenant, people, tokens), Groups(GroupStore(store), people)
        self.replays, self.retention, self.trails = Replays(store), Retention(store), Trails(store)
        self.revocation_cache, self.duty = RevocationCache(people, refresher), Duty(duty, people)
        self.activity = ActivityLog(ActivityStore(store))
        store.confirmer.replicas = settings.replicas
        self.recovery, counts = Recovery(self.desk, self.runs), store.counts
        counts.on_recall, counts.on_loss = self._recall_losses, self._note_loss
        counts.on_settled = partial(self.freezes.known, fresh=True)
        self.contacts = Contacts(tenant, ContactStore(store), people, attempts, self.activity)
        self.inspections = Inspections(self.desk.suspensions, self.runs, self.trails, self.schedule, store.readings)
        if store.hooks.archive is not None and settings.archive is not None:
            store.archive = store.hooks.archive(self)
        self._parts: dict[Callable[..., object], object] = {}

    async def _recall_losses(self) -> int:
        """Recover what this process's home knows of earlier losses; return when the last of them was noticed, or 0."""
        lost = [freeze for freeze in await self.freezes.known(fresh=True) if freeze.lost is not None]
        for freeze in lost:
            self.recovery.begin(cast(Loss, freeze.lost))
        return max((freeze.at_ms for freeze in lost), default=0)

    async def _note_loss(self, loss: Loss) -> None:
        freeze = await self.freezes.note_loss(loss)
        self.recovery.begin(loss)
        await self.activity.record(
            "store_went_back", freeze.by, door="desk", target=freeze.id, commits=loss.commits, reason=loss.describe()
        )

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


class Process:
    """A tenant's desk in this process: its settings, connections and credentials, and its `Wiring`."""

    def __init__(self, settings: Settings, connections: Connections, watch: Watch, hooks: Hooks) -> None:
        self.settings, self.watch = settings, watch
        self.rulebook = rulebook_of(settings.policy)
        self.posts = Posts(
            loopback=settings.aap_allow_loopback, internal=settings.receivers, proxy=settings.egress_proxy
        )
        plans = assessors_of(settings.assessors)
        check_receivers(plans, settings.receivers, loopback=settings.aap_allow_loopback)
        self.assessors = Assessors(plans, self.posts)
        self._connections, self._hooks = connections, hooks
        self.attempts = Attempts(connections.redis)
        self.passwords, self.providers = Passwords(), providers_of(settings)
        self.tokens = Tokens(connections)
        self.credentials = Credentials(
            self.tokens,
            settings.tenant,
            lambda: self.wiring.reviewers,
            idle_s=settings.session_idle_s,
            person_tokens=PersonTokens(settings.token_issuers),
            refresher=connections.refresher,
        )

    @cached_property
    def wiring(self) -> Wiring:
        """The parts that serve the tenant."""
        return Wiring(self, TenantStore(self._connections, self.settings.tenant, self._hooks))

    async def find_instance(self, token: str) -> Instance | None:
        token_hash = hash_token(token)
        key = await self.tokens.find_instance(token_hash)
        if key is None:
            await self.tokens.check_store()
        if key is None or key.tenant != self.settings.tenant:
            return None
        instance = await self.wiring.part(Instances).read(key.instance_id)
        return instance if instance is not None and instance.credential_hash == token_hash else None


def settle_memory() -> None:
    """Exclude everything that exists now from later garbage collections, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 5, 200)
