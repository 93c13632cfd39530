"""Views of sessions, reviewers, keys, freezes, diagnostics, and rules that are checked or tried on a call."""

from typing import Annotated

from pydantic import Field

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import KeyKind, KeyScope
from sayso.wire.models import Later, Timestamp, View


class SessionView(View):
    """A new session with the only copy of its token."""

    token: str = Field(examples=["3f1c…"])
    name: str
    roles: tuple[str, ...]
    password_by: Later[str] = Field(description="Who else set the password: change it first. Empty for yourself.")
    expires_at: Timestamp = Field(description="When the session ends in any case.")
    idle_timeout_s: int = Field(description="The session ends after this many seconds without use.")


class OpenSessionView(View):
    """A valid session."""

    id: str
    opened_at: Timestamp
    expires_at: Timestamp = Field(description="When it ends in any case.")
    idle_until: Timestamp = Field(description="When it ends without use.")
    address: str = Field(description="The address of the client that signed in, if known.")
    client: str = Field(description="The User-Agent of the client that signed in; it is not verified.")
    current: bool = Field(description="Whether this request uses the session.")


class SessionList(View):
    """Valid sessions, the newest first."""

    sessions: list[OpenSessionView]


class EndedSessions(View):
    """The number of ended sessions."""

    ended: int


class ReviewerView(View):
    """A person who may decide; admins also manage people and keys."""

    name: str
    roles: tuple[str, ...]
    active: bool
    manager: str | None
    managed_by: Later[str] = Field(description="`directory` if that adds and deactivates the person; else empty.")
    password_by: Later[str] = Field(description="Who else set the password; empty once the person has changed it.")
    created_at: Timestamp = Field(validation_alias="created_at_ms")


class ReviewerList(View):
    """All reviewers by name."""

    reviewers: list[ReviewerView]


class KeyView(View):
    """A key without its secret."""

    id: str
    name: str
    kind: KeyKind
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    revoked_at: Timestamp | None = Field(validation_alias="revoked_at_ms")
    ends_at: Timestamp | None = Field(validation_alias="ends_at_ms", description="When a rotated key becomes invalid.")
    context: JsonObject
    owner: str | None
    created_by: Later[str] = Field(description="The person who made the key; empty where nobody is known.")
    scopes: Later[tuple[KeyScope, ...]] = Field(description="What an agent's key may do; empty for everything.")
    agents: Later[tuple[str, ...]] = Field(description="The agents as which it asks; empty for all.")
    networks: Later[tuple[str, ...]] = Field(description="The ranges of addresses of its use; empty for all.")
    expires_at: Timestamp | None = Field(default=None, validation_alias="expires_at_ms")
    prefix: Later[str] = Field(description="The first characters of the secret; it revokes the key, too.")
    listed: bool = Field(
        default=True, description="False for a key that no Sayso made: find out who wrote it, and revoke it."
    )
    last_used_at: Timestamp | None = Field(default=None, description="To a minute; null for a key that was never used.")


class NewKeyView(KeyView):
    """A new key with its secret."""

    key: Annotated[str | None, Field(default=None, description="The only copy; null if the request is repeated.")]


class KeyList(View):
    """All keys, the oldest first."""

    keys: list[KeyView]


class FreezeView(View):
    """A freeze. The clock process creates those with the scope `time` when the store's clock jumps."""

    id: str
    scope: str
    reason: str
    by: str
    at: Timestamp = Field(validation_alias="at_ms")
    jumped_to: Timestamp | None = Field(
        validation_alias="jumped_to_ms",
        description="For `time`: the store's time after the jump; `at` is the time before it.",
    )
    unfrozen_by: str | None
    unfrozen_at: Timestamp | None = Field(validation_alias="unfrozen_at_ms")


class FreezeList(View):
    """Current freezes, the oldest first."""

    freezes: list[FreezeView]


class FindingView(View):
    """The state of one part of Sayso."""

    part: str
    ok: bool
    message: str
    todo: str = Field(description="What to do; empty if the part works.")


class FindingList(View):
    """All findings."""

    findings: list[FindingView]


class RulesChecked(View):
    """Whether the rules are valid."""

    ok: bool
    rules: int
    version: str | None
    faults: list[str] = Field(description="All faults with their lines.")
    warnings: list[str] = Field(description="Valid parts of the rules that cannot work, as far as Sayso can tell.")


class RuleTrial(View):
    """One rule tried on the call."""

    rule_id: str
    action: str
    match: str = Field(description="decides, matches, differs, unknown, disabled or shadow.")
    part: str = Field(description="The first part of the rule that the call does not meet, such as `tool`.")
    saw: JsonObject = Field(description="What the condition read, or what the call has for that part.")
    would: str | None = Field(description="The action of a shadow rule that would have decided.")
    sentence: str


class Explained(View):
    """The decision on the call, and every rule in the order of trial."""

    action: str
    effect: str = Field(description="What would happen to the call.")
    reason: str
    rule_id: str | None = Field(description="The rule that decides; null for the default, or in doubt.")
    rule_version: str
    error: str | None = Field(description="What could not be evaluated.")
    absolute: bool = Field(description="Whether nothing lifts the denial.")
    resembles: list[str] = Field(description="Names in rules that the tool's name resembles.")
    rules: list[RuleTrial]


class ActivityView(View):
    """One act, or one refusal; `hash` covers it and the hash of the entry before it."""

    seq: int
    at: Timestamp = Field(validation_alias="at_ms")
    act: str = Field(examples=["key_created"])
    by: str = Field(description="Who did it; empty for somebody who has not signed in.")
    door: str = Field(description="How: `web`, `api`, the name of a channel, or `setup`.")
    address: str = Field(description="The address of the client; empty if unknown.")
    target: str = Field(description="What it was done to: the id of a key, the name of a person, and so on.")
    outcome: str = Field(description="`done` or `refused`.")
    times: int = Field(description="Of a refusal: how many of this source there were in the hour.")
    data: JsonObject
    before: str = Field(description="The hash of the entry before; empty for the first.")
    hash: str


class ActivityList(View):
    """Entries, the newest first."""

    activity: list[ActivityView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")
    broken_at: int | None = Field(description="The first entry of this page that does not fit the chain; else null.")
