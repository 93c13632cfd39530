"""The names of all keys. The header of `lua/commit.lua` describes their values."""

from functools import lru_cache
from hashlib import sha256

# Channels of a tenant, suspension or run; every commit that changes it publishes there.
CHANGES = "sayso:changes:"
FORMAT = "sayso:format"  # the format version of the whole store, outside of any tenant
KEYS = "sayso:keys:"  # API keys by the SHA-256 of the key, outside of any tenant: each names its tenant
INSTANCE_KEYS = "sayso:aap-keys:"  # credentials by the SHA-256 of the token; each names its tenant and instance
SESSIONS = "sayso:sessions:"  # sessions by the SHA-256 of their token
ATTEMPTS = "sayso:attempts"  # attempts to sign in, by the hash of the name or address; kept for minutes


class TenantKeys:
    """The keys of one tenant. The braces are a hash tag: all keys are on one server."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        prefix = self.prefix = f"sayso:{{{tenant}}}:"
        self.absences = f"{prefix}absences"  # by person
        self.activity = f"{prefix}activity"  # acts of people and refusals, the oldest first
        self.agents = f"{prefix}agents"  # registered agents' manifests by name
        self.announcements = f"{prefix}announcements"
        self.api_keys = f"{prefix}api-keys"  # hashes of API keys by id
        self.buckets = f"{prefix}buckets"
        self.cards = f"{prefix}cards"  # suspensions with a delivery of a card to attempt, by the next attempt
        self.contacts = f"{prefix}contacts"  # linked addresses by a digest of channel and address
        self.clock = f"{prefix}clock"
        self.decided = f"{prefix}decided"
        self.definitions = f"{prefix}definitions"
        self.deliveries = f"{prefix}deliveries"
        self.endpoints = f"{prefix}endpoints"
        self.facts = f"{prefix}facts"  # what commits asked and decided, until it is counted
        self.failures = f"{prefix}failures"
        self.file_bytes = f"{prefix}file-bytes"  # of all attached files
        self.file_shares = f"{prefix}file-shares"  # the same of each key, agent and person
        self.file_sizes = (self.file_bytes, self.file_shares)
        self.freezes = f"{prefix}freezes"
        self.groups = f"{prefix}groups"  # groups by name
        self.inbox = f"{prefix}inbox"
        self.next_drill = f"{prefix}next-drill"  # kept until the next scheduled drill is due
        self.open = f"{prefix}open"
        self.owners = f"{prefix}owners"
        self.pace = f"{prefix}pace"
        self.preferences = f"{prefix}preferences"  # by person
        self.presence = f"{prefix}presence"  # "<item> <person>" of open items' pages, by their end
        self.ready = f"{prefix}ready"
        self.retained = f"{prefix}retained"
        self.reviewers = f"{prefix}reviewers"  # reviewers by name
        self.sampling = f"{prefix}sampling"  # the secret that draws items for second looks
        self.second_look = f"{prefix}second-look"  # "<run> <number of the event>" of calls that wait for a second look
        self.senders = f"{prefix}senders"
        self.schedule = f"{prefix}schedule"
        self.starts = f"{prefix}starts"  # how late workers took runs
        self.subscriptions = f"{prefix}subscriptions"  # browsers' subscriptions to notifications
        self.trails = f"{prefix}trails"
        self.erased = f"{prefix}erased"
        self.used = f"{prefix}used"  # when keys and people were last here, by id of the key or "person:" and name
        self.vapid = f"{prefix}vapid"  # the key that signs notifications to browsers
        self.views = f"{prefix}views"  # saved views by person
        self.rush = f"{prefix}rush"  # while many deadlines pass at once
        self.waiting = f"{prefix}waiting"  # workers that take runs at once, and until when
        self._name_rules(prefix)

    def _name_rules(self, prefix: str) -> None:
        """Name the keys of rules and of what they let run."""
        self.grants = f"{prefix}grants"  # grants by id
        self.grant_uses = f"{prefix}grant-uses"  # grants and mandates by their last use
        self.grant_trials = f"{prefix}grant-trials"  # what grants on probation would have allowed, by grant and answer
        self.mandates = f"{prefix}mandates"  # mandates by id
        self.learning = f"{prefix}learning"  # rules for agents whose calls people decided since the last look
        self.replays = f"{prefix}replays"  # replays of rules by their start
        self.rulebook = f"{prefix}rulebook"
        self.rules = f"{prefix}rules"
        self.rule_changes = f"{prefix}rule-changes"  # which version came into force when, the latest last
        self.rule_versions = f"{prefix}rule-versions"  # versions of the rules by the time of saving
        self.shadows = f"{prefix}shadows"  # candidates that judge or judged calls in shadow, the latest first

    def refusals(self, hour: int) -> str:
        """The counts of refusals in an hour since 1970, by source."""
        return f"{self.prefix}refusals:{hour}"

    def handed(self, holder: str) -> str:
        """The runs that were handed to one waiting worker."""
        return f"{self.prefix}handed:{holder}"

    def suspension(self, suspension_id: str) -> str:
        return f"{self.prefix}s:{suspension_id}"

    def asked_by(self, rule_id: str) -> str:
        return f"{self.prefix}asked-by:{rule_id}"

    def replay(self, replay_id: str) -> str:
        """A replay of rules, with its progress or result; kept for a day."""
        return f"{self.prefix}replay:{replay_id}"

    def rule_version(self, version: str) -> str:
        """The bytes and the rules of a version."""
        return f"{self.prefix}rule-version:{version}"

    def attestations(self, digest: str) -> str:
        """When each person attested the bytes of this SHA-256."""
        return f"{self.prefix}attestations:{digest}"

    def rule_hits(self, day: int) -> str:
        """The key of one day's hits; the day counts from 1970 in UTC."""
        return f"{self.prefix}rule-hits:{day}"

    def counter(self, name: str) -> str:
        """One counter of a rule, by its hash."""
        return f"{self.prefix}counter:{name}"

    def grants_of(self, scope: str) -> str:
        """The grants of a rule for an agent, by their end."""
        return f"{self.prefix}grants-of:{scope}"

    def lessons(self, scope: str) -> str:
        """The last decided calls of a rule for an agent, if it learns grants."""
        return f"{self.prefix}lessons:{scope}"

    def mandates_of(self, scope: str) -> str:
        """The mandates of an agent in a conversation, by their end."""
        return f"{self.prefix}mandates-of:{scope}"

    def run(self, run_id: str) -> str:
        return f"{self.prefix}r:{run_id}"

    def trail(self, run_id: str) -> str:
        return f"{self.prefix}e:{run_id}"

    def head(self, run_id: str) -> str:
        return f"{self.prefix}head:{run_id}"

    def external_events(self, run_id: str) -> str:
        return f"{self.prefix}external:{run_id}"

    def external_events_seen(self, run_id: str) -> str:
        return f"{self.prefix}external-seen:{run_id}"

    def comments(self, run_id: str) -> str:
        return f"{self.prefix}comments:{run_id}"

    def comments_seen(self, run_id: str) -> str:
        return f"{self.prefix}comments-seen:{run_id}"

    def files(self, run_id: str) -> str:
        """The files attached to a run's items, by item and id."""
        return f"{self.prefix}files:{run_id}"

    def file_contents(self, run_id: str) -> str:
        return f"{self.prefix}file-contents:{run_id}"

    def state(self, run_id: str) -> str:
        return f"{self.prefix}state:{run_id}"

    def runs(self, status: str) -> str:
        return f"{self.prefix}runs:{status}"

    def runs_of(self, owner: str) -> str:
        return f"{self.prefix}runs-of:{owner}"

    def open_of(self, owner: str) -> str:
        return f"{self.prefix}open-of:{owner}"

    def pace_of(self, owner: str) -> str:
        return f"{self.prefix}pace-of:{owner}"

    def sessions_of(self, name: str) -> str:
        """The hashes of a person's session tokens, by creation time."""
        return f"{self.prefix}sessions-of:{name}"

    def groups_of(self, name: str) -> str:
        """The names of a person's groups."""
        return f"{self.prefix}groups-of:{name}"

    def contacts_of(self, name: str) -> str:
        """The fields of a person's linked addresses in the contacts."""
        return f"{self.prefix}contacts-of:{name}"

    def contact_code(self, code_hash: str) -> str:
        """The person who may link an address with a code."""
        return f"{self.prefix}contact-code:{code_hash}"

    def install_state(self, state_hash: str) -> str:
        """The session and channel of an installation under way."""
        return f"{self.prefix}install-state:{state_hash}"

    def channel_token(self, name: str) -> str:
        """The encrypted token of a channel's installed app."""
        return f"{self.prefix}channel-token:{name}"

    def lease(self, name: str) -> str:
        """A named lease of one process."""
        return f"{self.prefix}lease:{name}"

    def mailed_code(self, code_hash: str) -> str:
        """The person and address of a mailed code."""
        return f"{self.prefix}mailed-code:{code_hash}"

    def channel_note(self, channel: str, name: str) -> str:
        """What a channel remembers under a name."""
        return f"{self.prefix}channel-note:{sha256(f'{channel} {name}'.encode()).hexdigest()[:32]}"

    def bucket(self, name: str) -> str:
        """The open items with the same facets, by deadline."""
        return f"{self.prefix}bucket:{name}"

    def idempotency(self, actor: str, key: str) -> str:
        return f"{self.prefix}idem:{sha256(f'{actor} {key}'.encode()).hexdigest()[:32]}"

    def thread(self, owner: str, thread_id: str) -> str:
        """The turns of an owner's thread."""
        return f"{self.prefix}thread:{sha256(f'{owner} {thread_id}'.encode()).hexdigest()[:32]}"

    def thread_tools(self, owner: str, thread_id: str) -> str:
        """The tools that ran in an owner's thread, by their first start."""
        return f"{self.prefix}thread-tools:{sha256(f'{owner} {thread_id}'.encode()).hexdigest()[:32]}"

    def denials(self, name: str) -> str:
        """The latest denials of one call by people."""
        return f"{self.prefix}denials:{name}"

    def precedents(self, owner: str, agent: str, tool: str) -> str:
        """The measures of the latest approved calls of an agent's tool."""
        return f"{self.prefix}precedents:{_hash(owner, agent, tool)}"

    def last_approval(self, reviewer: str, owner: str, agent: str, tool: str) -> str:
        """The latest item of an agent's tool that a reviewer approved."""
        return f"{self.prefix}last-approval:{_hash(reviewer, owner, agent, tool)}"

    def instance(self, instance_id: str) -> str:
        return f"{self.prefix}aap:{instance_id}"

    def gone(self, instance_id: str) -> str:
        return f"{self.prefix}aap-gone:{instance_id}"

    def figures_of_hour(self, hour: int) -> str:
        """The counters of an hour since 1970."""
        return f"{self.prefix}figures:h:{hour}"

    def figures_of_day(self, day: int) -> str:
        """The counters of a day since 1970, in UTC."""
        return f"{self.prefix}figures:d:{day}"

    def drilled(self, name: str) -> str:
        """A person's latest decisions on drills."""
        return f"{self.prefix}drilled:{name}"

    def recent(self, name: str) -> str:
        """A person's latest decisions."""
        return f"{self.prefix}recent:{name}"

    def delivery(self, event_id: str) -> str:
        return f"{self.prefix}delivery:{event_id}"

    def lane(self, endpoint_id: str) -> str:
        """The messages for one endpoint, by their next attempt."""
        return f"{self.prefix}lane:{endpoint_id}"


@lru_cache(64)
def keys_of(tenant: str) -> TenantKeys:
    """Return the keys of a tenant, the same object each time: every commit needs them."""
    return TenantKeys(tenant)


@lru_cache(4_096)
def _hash(*names: str) -> str:
    """Return a hash of names that may hold any character."""
    return sha256("\n".join(f"{len(name)} {name}" for name in names).encode(errors="surrogatepass")).hexdigest()[:32]


def name_call(run_id: str, seq: int) -> str:
    """Return the name of a call among those that wait for a second look."""
    return f"{run_id} {seq}"
