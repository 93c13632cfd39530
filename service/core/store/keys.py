"""The names of all keys. The header of `lua/commit.lua` describes their values."""

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256

PREFIX = "sayso:"  # of all keys
# Channels of a tenant, suspension or run; every commit that changes it publishes there.
CHANGES = "sayso:changes:"
FORMAT = "sayso:format"  # the format version of the whole store, outside of any tenant
EMPTIED = "The store was emptied. Restore it from a copy, or run `python -m service.setup`."
STORE = "sayso:store"  # a random id, made with the store; outside of any tenant
MACS = "sayso:macs"  # mark of a store whose records carry MACs, which has one itself; outside of any tenant
KEYS = "sayso:keys:"  # API keys by the SHA-256 of the key, outside of any tenant: each names its tenant
INSTANCE_KEYS = "sayso:aap-keys:"  # credentials by the SHA-256 of the token; each names its tenant and instance
SESSIONS = "sayso:sessions:"  # sessions by the SHA-256 of their token
ATTEMPTS = "sayso:attempts"  # attempts to sign in, by the hash of the name or address; kept for minutes

SHARED = frozenset(("format", "store", "macs", "keys", "aap-keys", "sessions"))
"""The kinds of keys outside of any tenant that a backup holds. In a cluster each tenant has its own, in its slot."""


def own_name(name: str, tenant: str) -> str:
    """Return the name of a tenant's own key, or channel, instead of one outside of any tenant."""
    return f"sayso:{{{tenant}}}:{name.removeprefix('sayso:')}"


class _Family:
    """The keys of a tenant that one word, or a number, tells apart."""

    def __init__(self, begin: str) -> None:
        self._begin = begin

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, keys: "TenantKeys", owner: type) -> Callable[[str | int], str]:
        begin = f"{keys.prefix}{self._begin}"
        keys.__dict__[self._name] = name_key = lambda word: f"{begin}{word}"  # found first from now on
        return name_key


class TenantKeys:
    """The keys of one tenant. The braces are a hash tag: all keys are on one server."""

    refusals = _Family("refusals:")  # counts of refusals in an hour since 1970, by source
    handed = _Family("handed:")  # runs that were handed to one waiting worker
    suspension = _Family("s:")
    asked_by = _Family("asked-by:")
    replay = _Family("replay:")  # a replay of rules, with its progress or result; kept for a day
    rule_version = _Family("rule-version:")  # the bytes and the rules of a version
    attestations = _Family("attestations:")  # when each person attested the bytes of this SHA-256
    rule_hits = _Family("rule-hits:")  # hits of a day since 1970, in UTC
    counter = _Family("counter:")  # one counter of a rule, by its hash
    grants_of = _Family("grants-of:")  # grants of a rule for an agent, by their end
    lessons = _Family("lessons:")  # last decided calls of a rule for an agent, if it learns grants
    mandates_of = _Family("mandates-of:")  # mandates of an agent in a conversation, by their end
    run = _Family("r:")
    trail = _Family("e:")
    head = _Family("head:")
    external_events = _Family("external:")
    external_events_seen = _Family("external-seen:")
    comments = _Family("comments:")
    comments_seen = _Family("comments-seen:")
    files = _Family("files:")  # files attached to a run's items, by item and id
    file_contents = _Family("file-contents:")
    state = _Family("state:")
    runs = _Family("runs:")
    runs_of = _Family("runs-of:")
    open_of = _Family("open-of:")
    pace_of = _Family("pace-of:")
    sessions_of = _Family("sessions-of:")  # hashes of a person's session tokens, by creation time
    groups_of = _Family("groups-of:")  # names of a person's groups
    contacts_of = _Family("contacts-of:")  # fields of a person's linked addresses in the contacts
    contact_code = _Family("contact-code:")  # the person who may link an address with a code
    sign_in = _Family("sign-in:")  # a sign-in with a provider that is under way, by the hash of its secret
    provider_sessions = _Family("provider-sessions:")  # hashes of session tokens, by a digest of the provider's session
    logout_token = _Family("logout-token:")  # kept while a logout token that was used is valid
    password_given = _Family("password-given:")  # who gave a password and no code yet, by the hash of a secret
    app_begun = _Family("app-begun:")  # the secret of an app that is being added, by the hash of the session's token
    passkey = _Family("passkey:")  # a passkey by the id of its credential
    passkeys_of = _Family("passkeys-of:")  # ids of a person's passkeys
    passkey_challenge = _Family("passkey-challenge:")  # an unused challenge, by its hash
    install_state = _Family("install-state:")  # the session and channel of an installation under way
    channel_token = _Family("channel-token:")  # the encrypted token of a channel's installed app
    lease = _Family("lease:")  # a named lease of one process
    mailed_code = _Family("mailed-code:")  # the person and address of a mailed code
    bucket = _Family("bucket:")  # open items with the same facets, by deadline
    texts = _Family("texts:")  # the texts of a bucket's items, for the search
    denials = _Family("denials:")  # latest denials of one call by people
    instance = _Family("aap:")
    gone = _Family("aap-gone:")
    figures_of_hour = _Family("figures:h:")  # counters of an hour since 1970
    figures_of_day = _Family("figures:d:")  # counters of a day since 1970, in UTC
    drilled = _Family("drilled:")  # a person's latest decisions on drills
    recent = _Family("recent:")  # a person's latest decisions
    waits = _Family("waits:")  # how long the latest decided items of a tool waited
    delivery = _Family("delivery:")
    lane = _Family("lane:")  # messages for one endpoint, by their next attempt

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        prefix = self.prefix = f"sayso:{{{tenant}}}:"
        self.absences = f"{prefix}absences"  # by person
        self.activity = f"{prefix}activity"  # acts of people and refusals, the oldest first
        self.agents = f"{prefix}agents"  # registered agents' manifests by name
        self.announcements, self.api_keys = f"{prefix}announcements", f"{prefix}api-keys"  # hashes of API keys by id
        self.buckets = f"{prefix}buckets"
        self.comparing = f"{prefix}comparing"  # the server that each process compared its commits with last, and when
        self.cards = f"{prefix}cards"  # suspensions with a delivery of a card to attempt, by the next attempt
        self.contacts = f"{prefix}contacts"  # linked addresses by a digest of channel and address
        self.clock, self.commits = f"{prefix}clock", f"{prefix}commits"  # commits of each process, counted
        self.decided = f"{prefix}decided"
        self.definitions = f"{prefix}definitions"
        self.deliveries = f"{prefix}deliveries"
        self.directory = f"{prefix}directory"  # users and groups of a company's directory, by id
        self.directory_names = f"{prefix}directory-names"  # their ids by the names that none may have twice
        self.endpoints = f"{prefix}endpoints"
        self.facts = f"{prefix}facts"  # what commits asked and decided, until it is counted
        self.failures = f"{prefix}failures"
        self.file_bytes = f"{prefix}file-bytes"  # of all attached files
        self.file_shares = f"{prefix}file-shares"  # the same of each key, agent and person
        self.file_sizes = (self.file_bytes, self.file_shares)
        self.freezes = f"{prefix}freezes"
        self.groups, self.roles = f"{prefix}groups", f"{prefix}roles"  # groups, and roles that admins made, by name
        self.emergencies, self.inbox = f"{prefix}emergencies", f"{prefix}inbox"  # by person; open suspensions
        self.moving, self.next_drill = f"{prefix}moving", f"{prefix}next-drill"  # see `loss/moves.py`; until one is due
        self.offers, self.open = f"{prefix}offers", f"{prefix}open"  # offers to undo a call, by deadline; what is open
        self.owners = f"{prefix}owners"
        self.pace = f"{prefix}pace"
        self.preferences = f"{prefix}preferences"  # by person
        self.presence = f"{prefix}presence"  # "<item> <person>" of open items' pages, by their end
        self.previews, self.ready = f"{prefix}previews", f"{prefix}ready"  # suspensions that wait for a preview; runs
        self.retained = f"{prefix}retained"
        self.reviewers = f"{prefix}reviewers"  # reviewers by name
        self.sampling = f"{prefix}sampling"  # the secret that draws items for second looks
        self.second_look = f"{prefix}second-look"  # "<run> <number of the event>" of calls that wait for a second look
        self.senders = f"{prefix}senders"
        self.schedule = f"{prefix}schedule"
        self.subjects = f"{prefix}subjects"  # names of people by a digest of their provider's issuer and subject
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
        self._name_evidence(prefix)

    def _name_rules(self, prefix: str) -> None:
        self.grants = f"{prefix}grants"  # grants by id
        self.grant_uses = f"{prefix}grant-uses"  # grants and mandates by their last use
        self.grant_trials = f"{prefix}grant-trials"  # what grants on probation would have allowed, by grant and answer
        self.mandates = f"{prefix}mandates"  # mandates by id
        self.learning = f"{prefix}learning"  # rules for agents whose calls people decided since the last look
        self.settings = f"{prefix}settings"  # of the last start, for the activity log
        self.replays = f"{prefix}replays"  # replays of rules by their start
        self.rulebook = f"{prefix}rulebook"
        self.rules = f"{prefix}rules"
        self.rule_changes = f"{prefix}rule-changes"  # which version came into force when, the latest last
        self.rule_versions = f"{prefix}rule-versions"  # versions of the rules by the time of saving
        self.shadows = f"{prefix}shadows"  # candidates that judge or judged calls in shadow, the latest first
        self.totals = f"{prefix}totals"  # verdicts, outcomes and times to decide since the first day

    def _name_evidence(self, prefix: str) -> None:
        self.archive, self.archive_version = f"{prefix}archive", f"{prefix}archive-version"  # segments, and its version
        self.recalled = f"{prefix}recalled"  # archived runs that are in the store for their readers
        self.uncut = f"{prefix}uncut"  # runs in the store to cut out of segments
        self.unchecked = f"{prefix}unchecked"  # new events since the last checkpoint, by run
        self.checking = f"{prefix}checking"  # runs of the checkpoint under way
        self.checkpoint = f"{prefix}checkpoint"  # the last checkpoint
        self.checkpoints = f"{prefix}checkpoints"  # checkpoints by their number
        self.checkpoint_of = f"{prefix}checkpoint-of"  # number of the latest checkpoint, by chain
        self.checkpoint_sinks = f"{prefix}checkpoint-sinks"  # the last delivered checkpoint, by sink

    def channel_note(self, channel: str, name: str) -> str:
        return f"{self.prefix}channel-note:{sha256(f'{channel} {name}'.encode()).hexdigest()[:32]}"

    def idempotency(self, actor: str, key: str) -> str:
        return f"{self.prefix}idem:{sha256(f'{actor} {key}'.encode()).hexdigest()[:32]}"

    def thread(self, owner: str, thread_id: str) -> str:
        return f"{self.prefix}thread:{sha256(f'{owner} {thread_id}'.encode()).hexdigest()[:32]}"

    def thread_tools(self, owner: str, thread_id: str) -> str:
        """The tools that ran in an owner's thread, by their first start."""
        return f"{self.prefix}thread-tools:{sha256(f'{owner} {thread_id}'.encode()).hexdigest()[:32]}"

    def precedents(self, owner: str, agent: str, tool: str) -> str:
        """The measures of the latest approved calls of an agent's tool."""
        return f"{self.prefix}precedents:{_hash(owner, agent, tool)}"

    def near_denials(self, owner: str, tool: str) -> str:
        """The latest denials of an owner's calls of a tool, to find those of near calls."""
        return f"{self.prefix}near-denials:{_hash(owner, tool)}"

    def returned(self, owner: str, thread_id: str, tool: str) -> str:
        """The item of a tool in an owner's thread whose changes a reviewer requested."""
        return f"{self.prefix}returned:{_hash(owner, thread_id, tool)}"

    def last_approval(self, reviewer: str, owner: str, agent: str, tool: str) -> str:
        """The latest item of an agent's tool that a reviewer approved."""
        return f"{self.prefix}last-approval:{_hash(reviewer, owner, agent, tool)}"


@lru_cache(64)
def keys_of(tenant: str) -> TenantKeys:
    """Return the keys of a tenant, the same object each time: every commit needs them."""
    return TenantKeys(tenant)


@lru_cache(4_096)
def _hash(*names: str) -> str:
    return sha256("\n".join(f"{len(name)} {name}" for name in names).encode(errors="surrogatepass")).hexdigest()[:32]


def name_call(run_id: str, seq: int) -> str:
    """Return the name of a call among those that wait for a second look."""
    return f"{run_id} {seq}"
