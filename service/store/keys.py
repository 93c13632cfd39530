"""The names of all keys. The header of `lua/commit.lua` describes their values."""

from dataclasses import dataclass
from hashlib import sha256

CHANGES = "sayso:changes:"
"""Prefix of the channel of a tenant, suspension or run; every commit that changes it publishes there."""

FORMAT = "sayso:format"
"""The format version of the whole store, outside of any tenant."""

KEYS = "sayso:keys:"
"""API keys by the SHA-256 of the key, outside of any tenant: each names its tenant."""

INSTANCE_KEYS = "sayso:aap-keys:"
"""Credentials of instances by the SHA-256 of the token; each names its tenant and instance."""

SESSIONS = "sayso:sessions:"
"""Sessions by the SHA-256 of their token."""

ATTEMPTS = "sayso:attempts"
"""Attempts to sign in, by the hash of the name or address; kept for minutes."""


@dataclass(frozen=True)
class TenantKeys:
    """The keys of one tenant. The braces are a hash tag: all keys are on one server."""

    tenant: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", f"sayso:{{{self.tenant}}}:")

    prefix: str = ""

    def suspension(self, suspension_id: str) -> str:
        """The record."""
        return f"{self.prefix}s:{suspension_id}"

    def run(self, run_id: str) -> str:
        """A run's latest suspension."""
        return f"{self.prefix}r:{run_id}"

    def trail(self, run_id: str) -> str:
        """A run's trail."""
        return f"{self.prefix}e:{run_id}"

    def head(self, run_id: str) -> str:
        """The end of the trail of a deleted run."""
        return f"{self.prefix}head:{run_id}"

    def external_events(self, run_id: str) -> str:
        """A run's external events."""
        return f"{self.prefix}external:{run_id}"

    def external_events_seen(self, run_id: str) -> str:
        """The digests of a run's external events."""
        return f"{self.prefix}external-seen:{run_id}"

    def state(self, run_id: str) -> str:
        """The saved state of a run."""
        return f"{self.prefix}state:{run_id}"

    def runs(self, status: str) -> str:
        """Runs in one status, except suspended."""
        return f"{self.prefix}runs:{status}"

    def runs_of(self, owner: str) -> str:
        """The runs of one owner."""
        return f"{self.prefix}runs-of:{owner}"

    def sessions_of(self, name: str) -> str:
        """The hashes of a person's session tokens, by creation time."""
        return f"{self.prefix}sessions-of:{name}"

    def idempotency(self, actor: str, key: str) -> str:
        """The request and result of an actor's Idempotency-Key."""
        return f"{self.prefix}idem:{sha256(f'{actor} {key}'.encode()).hexdigest()[:32]}"

    def thread(self, owner: str, thread_id: str) -> str:
        """The turns of an owner's thread."""
        return f"{self.prefix}thread:{sha256(f'{owner} {thread_id}'.encode()).hexdigest()[:32]}"

    def instance(self, instance_id: str) -> str:
        """An instance of the Agent Approval Protocol."""
        return f"{self.prefix}aap:{instance_id}"

    def gone(self, instance_id: str) -> str:
        """The mark of a deleted instance."""
        return f"{self.prefix}aap-gone:{instance_id}"

    def delivery(self, event_id: str) -> str:
        """A signed message."""
        return f"{self.prefix}delivery:{event_id}"

    @property
    def deliveries(self) -> str:
        """Signed messages by their next attempt."""
        return f"{self.prefix}deliveries"

    @property
    def cards(self) -> str:
        """Suspensions with a delivery of a card to attempt, by the next attempt."""
        return f"{self.prefix}cards"

    def lease(self, name: str) -> str:
        """A named lease of one process."""
        return f"{self.prefix}lease:{name}"

    def card_claim(self, suspension_id: str) -> str:
        """The claim of the process that delivers a suspension's cards."""
        return f"{self.prefix}card-claim:{suspension_id}"

    @property
    def subscriptions(self) -> str:
        """Browsers' subscriptions to notifications."""
        return f"{self.prefix}subscriptions"

    @property
    def vapid(self) -> str:
        """The key that signs notifications to browsers."""
        return f"{self.prefix}vapid"

    @property
    def owners(self) -> str:
        """All owners of runs."""
        return f"{self.prefix}owners"

    @property
    def schedule(self) -> str:
        """Suspensions by due time."""
        return f"{self.prefix}schedule"

    @property
    def inbox(self) -> str:
        """Pending suspensions by deadline."""
        return f"{self.prefix}inbox"

    @property
    def open(self) -> str:
        """Open items, and active runs without one."""
        return f"{self.prefix}open"

    def open_of(self, owner: str) -> str:
        """Open items and active runs of one owner."""
        return f"{self.prefix}open-of:{owner}"

    @property
    def pace(self) -> str:
        """The pace of all owners' requests."""
        return f"{self.prefix}pace"

    def pace_of(self, owner: str) -> str:
        """The pace of one owner's requests."""
        return f"{self.prefix}pace-of:{owner}"

    @property
    def decided(self) -> str:
        """Suspensions that are no longer pending."""
        return f"{self.prefix}decided"

    @property
    def ready(self) -> str:
        """The ready list: suspensions for workers."""
        return f"{self.prefix}ready"

    @property
    def definitions(self) -> str:
        """Tool definitions by digest."""
        return f"{self.prefix}definitions"

    @property
    def agents(self) -> str:
        """Registered agents' manifests by name."""
        return f"{self.prefix}agents"

    @property
    def trails(self) -> str:
        """Deleted runs whose trail is kept, by their end."""
        return f"{self.prefix}trails"

    @property
    def retained(self) -> str:
        """The mark of a recent retention pass."""
        return f"{self.prefix}retained"

    @property
    def freezes(self) -> str:
        """Freezes by id."""
        return f"{self.prefix}freezes"

    @property
    def rules(self) -> str:
        """The version of the rules in force, and of each process."""
        return f"{self.prefix}rules"

    @property
    def rulebook(self) -> str:
        """The rules in force."""
        return f"{self.prefix}rulebook"

    @property
    def clock(self) -> str:
        """The last reading of any clock, and the latest time that a clock confirmed."""
        return f"{self.prefix}clock"

    @property
    def reviewers(self) -> str:
        """Reviewers by name."""
        return f"{self.prefix}reviewers"

    @property
    def api_keys(self) -> str:
        """Hashes of API keys by id."""
        return f"{self.prefix}api-keys"
