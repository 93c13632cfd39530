"""Name every key of a tenant, in one place. The header of `lua/commit.lua` says what each one holds."""

from dataclasses import dataclass
from hashlib import sha256

CHANGES = "sayso:changes:"
"""Before the name of a tenant, suspension or run: the channel on which every commit that moves it says so."""

FORMAT = "sayso:format"
"""The number of the format in which the whole store is written; it stands outside of any tenant."""

KEYS = "sayso:keys:"
"""API keys by the SHA-256 of the whole key; a key leads to its tenant, so it stands outside of any."""

INSTANCE_KEYS = "sayso:aap-keys:"
"""Instances' credentials by the SHA-256 of the token; one leads to its tenant and instance."""

SESSIONS = "sayso:sessions:"
"""Signed-in people by the SHA-256 of their session's token."""

ATTEMPTS = "sayso:attempts"
"""How often somebody tried to sign in, by the hash of the name or address; for minutes only."""


@dataclass(frozen=True)
class TenantKeys:
    """The keys of one tenant; the braces make them live on one server."""

    tenant: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", f"sayso:{{{self.tenant}}}:")

    prefix: str = ""

    def suspension(self, suspension_id: str) -> str:
        """The record."""
        return f"{self.prefix}s:{suspension_id}"

    def run(self, run_id: str) -> str:
        """What is known of a run."""
        return f"{self.prefix}r:{run_id}"

    def trail(self, run_id: str) -> str:
        """A run's events."""
        return f"{self.prefix}e:{run_id}"

    def head(self, run_id: str) -> str:
        """Where the trail of a forgotten run ends."""
        return f"{self.prefix}head:{run_id}"

    def told(self, run_id: str) -> str:
        """What other sources told of a run."""
        return f"{self.prefix}told:{run_id}"

    def external_events_seen(self, run_id: str) -> str:
        """Which of it is there already."""
        return f"{self.prefix}told-seen:{run_id}"

    def state(self, run_id: str) -> str:
        """A run's own state."""
        return f"{self.prefix}state:{run_id}"

    def runs(self, status: str) -> str:
        """The runs in one status, but for suspended ones."""
        return f"{self.prefix}runs:{status}"

    def runs_of(self, owner: str) -> str:
        """The runs that one credential asked for."""
        return f"{self.prefix}runs-of:{owner}"

    def sessions_of(self, name: str) -> str:
        """The hashes of one person's session tokens, by when each was opened."""
        return f"{self.prefix}sessions-of:{name}"

    def idempotency(self, actor: str, key: str) -> str:
        """What one actor's Idempotency-Key was used for."""
        return f"{self.prefix}idem:{sha256(f'{actor} {key}'.encode()).hexdigest()[:32]}"

    def thread(self, owner: str, thread_id: str) -> str:
        """The turns of one owner's thread, by what asked for each."""
        return f"{self.prefix}thread:{sha256(f'{owner} {thread_id}'.encode()).hexdigest()[:32]}"

    def instance(self, instance_id: str) -> str:
        """An instance of the Agent Approval Protocol."""
        return f"{self.prefix}aap:{instance_id}"

    def gone(self, instance_id: str) -> str:
        """There once an instance was deleted."""
        return f"{self.prefix}aap-gone:{instance_id}"

    def delivery(self, event_id: str) -> str:
        """A signed message that is to be delivered."""
        return f"{self.prefix}delivery:{event_id}"

    @property
    def deliveries(self) -> str:
        """When a signed message is to be tried next."""
        return f"{self.prefix}deliveries"

    @property
    def owners(self) -> str:
        """Everybody who ever asked for a run."""
        return f"{self.prefix}owners"

    @property
    def schedule(self) -> str:
        """When somebody must look at which suspension."""
        return f"{self.prefix}schedule"

    @property
    def inbox(self) -> str:
        """What waits for a reviewer."""
        return f"{self.prefix}inbox"

    @property
    def open(self) -> str:
        """Every open item, and every run at work without one."""
        return f"{self.prefix}open"

    def open_of(self, owner: str) -> str:
        """The same of one owner."""
        return f"{self.prefix}open-of:{owner}"

    @property
    def pace(self) -> str:
        """How fast all owners ask."""
        return f"{self.prefix}pace"

    def pace_of(self, owner: str) -> str:
        """How fast one owner asks."""
        return f"{self.prefix}pace-of:{owner}"

    @property
    def decided(self) -> str:
        """What no longer does."""
        return f"{self.prefix}decided"

    @property
    def ready(self) -> str:
        """What waits for a worker."""
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
        """The trails of forgotten runs, by the run's end."""
        return f"{self.prefix}trails"

    @property
    def retained(self) -> str:
        """There while what is old was forgotten not long ago."""
        return f"{self.prefix}retained"

    @property
    def freezes(self) -> str:
        """What an admin has frozen, by the freeze's id."""
        return f"{self.prefix}freezes"

    @property
    def rules(self) -> str:
        """Which version of the rules is in force, and which each process holds."""
        return f"{self.prefix}rules"

    @property
    def rulebook(self) -> str:
        """The rules in force."""
        return f"{self.prefix}rulebook"

    @property
    def clock(self) -> str:
        """The clocks' last beat, and up to when time is known to be right."""
        return f"{self.prefix}clock"

    @property
    def reviewers(self) -> str:
        """People by name."""
        return f"{self.prefix}reviewers"

    @property
    def api_keys(self) -> str:
        """The ids of this tenant's API keys, with what each is."""
        return f"{self.prefix}api-keys"
