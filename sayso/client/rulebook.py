"""Requests and responses for rules: replays, versions, grants and mandates."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from pydantic import Field

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.models import Empty, View

NO_LISTS: Mapping[str, str] = {}
_GRANTS, _MANDATES = "/api/v1/grants", "/api/v1/mandates"
_REPLAYS, _VERSIONS = "/api/v1/policy/replays", "/api/v1/policy/versions"
_SHADOW = "/api/v1/policy/shadow"


class ListedCall(View):
    """A recorded call that would change."""

    run_id: str
    suspension_id: str = ""
    item_id: str = ""
    at: datetime
    tool: str
    agent: str
    args: JsonObject = Field(default_factory=dict)
    before: str = ""
    now: str = ""
    reason: str = ""


class ReplayCell(View):
    """Calls with the same past and the same effects."""

    past: str
    was: str
    now: str
    count: int
    sums: dict[str, Decimal] = Field(default_factory=dict)
    listed: tuple[ListedCall, ...] = ()


class RuleChange(View):
    """How many calls move from one rule to another; None is the default."""

    before: str | None = None
    after: str | None = None
    was: str
    now: str
    count: int


class MissingFact(View):
    """Calls that cannot be judged again, by what is missing."""

    fact: str
    count: int


class ReviewTime(View):
    """An estimate of the reviewers' time."""

    measured: int = 0
    typical_ms: int | None = None
    saved_ms: int = 0
    added_ms: int = 0


class ReplayView(View):
    """A replay of rules, its progress, and what it has counted so far."""

    id: str
    status: str
    error: str = ""
    file: str
    version: str
    compares: bool = False
    shadow: bool = False
    sum: str | None = None
    since: datetime = Field(alias="from")
    until: datetime = Field(alias="to")
    started_at: datetime
    ended_at: datetime | None = None
    runs: int = 0
    of_runs: int = 0
    calls: int = 0
    changed: int = 0
    cells: tuple[ReplayCell, ...] = ()
    changes: tuple[RuleChange, ...] = ()
    missing: tuple[MissingFact, ...] = ()
    gaps: tuple[str, ...] = ()
    review_time: ReviewTime = ReviewTime()


def start_replay(
    text: str,
    file: str,
    since: str,
    until: str,
    *,
    path: str | None = None,
    base: str | None = None,
    lists: Mapping[str, str] = NO_LISTS,
) -> Request[ReplayView]:
    """Judge the recorded calls of a range again by the rules in `text`; `base` are rules to compare with.

    `lists` are the texts of the files that the lists of both name.
    """
    body: JsonObject = {"text": text, "file": file, "from": since, "to": until, "sum": path, "base": base}
    body["lists"] = dict(lists)
    return Request("POST", _REPLAYS, ReplayView, body=body)


def read_replay(replay_id: str, wait_s: int) -> Request[ReplayView]:
    """Read a replay; the desk responds when it has ended, or after `wait_s`."""
    path = f"{_REPLAYS}/{segment(replay_id)}"
    return Request("GET", path, ReplayView, query={"wait": f"{wait_s}s"}, poll_s=wait_s)


def delete_replay(replay_id: str) -> Request[Empty]:
    """End a replay and delete its result."""
    return Request("DELETE", f"{_REPLAYS}/{segment(replay_id)}", Empty)


class AttestationView(View):
    """A person who attests the bytes."""

    by: str
    at: datetime


class VersionSpan(View):
    """A time in which a version was in force; `end` is None while it still is."""

    start: datetime
    end: datetime | None = None
    how: str = ""
    by: str = ""


class VersionView(View):
    """A version of the rules; `text` is empty in lists."""

    version: str
    digest: str
    file: str
    in_force: bool
    withdrawn: bool = False
    attested: int = 0
    needed: int = 0
    attestations: tuple[AttestationView, ...] = ()
    spans: tuple[VersionSpan, ...] = ()
    text: str = ""


class VersionPage(View):
    """The kept versions, the last saved first."""

    versions: tuple[VersionView, ...]


LIST_VERSIONS = Request("GET", _VERSIONS, VersionPage)


def attest_rules(text: str, file: str, lists: Mapping[str, str] = NO_LISTS) -> Request[VersionView]:
    """Attest exactly these bytes; `lists` are the texts of the files that their lists name."""
    body: JsonObject = {"text": text, "file": file, "lists": dict(lists)}
    return Request("POST", "/api/v1/policy/attestations", VersionView, body=body)


def read_version(version: str) -> Request[VersionView]:
    """Read a version with its text."""
    return Request("GET", f"{_VERSIONS}/{segment(version)}", VersionView)


def restore_version(version: str, replaces: str) -> Request[VersionView]:
    """Put an earlier version back in force in place of `replaces`."""
    body: JsonObject = {"replaces": replaces}
    return Request("POST", f"{_VERSIONS}/{segment(version)}/restore", VersionView, body=body)


class ShadowView(View):
    """A candidate, and when it judged calls in shadow; `end` is None while it does."""

    version: str
    digest: str
    file: str
    by: str
    start: datetime
    end: datetime | None = None
    ended_by: str = ""


class ShadowsView(View):
    """The candidate in shadow, and those before it, the latest first."""

    current: ShadowView | None = None
    ended: tuple[ShadowView, ...] = ()


READ_SHADOW = Request("GET", _SHADOW, ShadowsView)


def begin_shadow(version: str) -> Request[VersionView]:
    """Put a version in shadow."""
    body: JsonObject = {"version": version}
    return Request("POST", _SHADOW, VersionView, body=body)


def begin_file_shadow(text: str, file: str, lists: Mapping[str, str] = NO_LISTS) -> Request[VersionView]:
    """Put a file of rules in shadow; `lists` are the texts of the files that its lists name."""
    body: JsonObject = {"text": text, "file": file, "lists": dict(lists)}
    return Request("POST", _SHADOW, VersionView, body=body)


def end_shadow(version: str) -> Request[Empty]:
    """End the candidate in shadow."""
    return Request("POST", f"{_SHADOW}/{segment(version)}/end", Empty)


def promote_shadow(version: str, replaces: str) -> Request[VersionView]:
    """Put the candidate in shadow in force in place of `replaces`."""
    body: JsonObject = {"replaces": replaces}
    return Request("POST", f"{_SHADOW}/{segment(version)}/promote", VersionView, body=body)


def report_shadow(version: str | None = None, path: str | None = None) -> Request[ReplayView]:
    """Count what a candidate would have done; by default that in shadow, else the last one."""
    body: JsonObject = {"version": version, "sum": path}
    return Request("POST", f"{_SHADOW}/report", ReplayView, body=body)


class LearnedGrant(View):
    """What a proposed grant would have allowed on probation, and how people decided those calls."""

    approvals: int
    probation: int
    ready: bool
    would_allow: int
    approved: int
    edited: int
    denied: int
    unanswered: int


class GrantView(View):
    """A grant and its use."""

    id: str
    sentence: str
    state: str
    void: bool = False
    rule_id: str
    agent: str
    tool: str
    scope: str = ""
    free: tuple[str, ...] = ()
    until: datetime
    granted_by: tuple[str, ...]
    offered: bool = False
    calls: int = 0
    total: str = "0"
    last_used_at: datetime | None = None
    learned: LearnedGrant | None = None


class GrantPage(View):
    """The grants of the last month."""

    grants: tuple[GrantView, ...]


LIST_GRANTS = Request("GET", _GRANTS, GrantPage)


def confirm_grant(grant_id: str) -> Request[GrantView]:
    """Grant together with the people who did."""
    return Request("POST", f"{_GRANTS}/{segment(grant_id)}/confirm", GrantView)


def revoke_grant(grant_id: str) -> Request[GrantView]:
    """End a grant at once."""
    return Request("POST", f"{_GRANTS}/{segment(grant_id)}/revoke", GrantView)


def reinstate_grant(grant_id: str) -> Request[GrantView]:
    """Overrule the denial that suspends a learned grant."""
    return Request("POST", f"{_GRANTS}/{segment(grant_id)}/reinstate", GrantView)


class MandateView(View):
    """A mandate, or the plan of one, and its use. Only one whose `state` is `in_force` lets calls run."""

    id: str
    state: str
    void: bool = False
    sentences: tuple[str, ...] = ()
    agent: str
    owner: str
    thread_id: str
    run_id: str | None = None
    title: str = ""
    count: int
    sum: str | None = None
    until: datetime | None = None
    approved_by: tuple[str, ...] = ()
    suspension_id: str
    item_id: str
    calls: int = 0
    total: str = "0"
    last_used_at: datetime | None = None

    @property
    def in_force(self) -> bool:
        """Whether calls inside it run without asking."""
        return self.state == "in_force"


class MandatePage(View):
    """The approved mandates of the last month."""

    mandates: tuple[MandateView, ...]


LIST_MANDATES = Request("GET", _MANDATES, MandatePage)


def propose_mandate(plan: JsonObject, key: str, on_behalf_of: str | None = None) -> Request[MandateView]:
    """Propose a plan."""
    return Request("POST", _MANDATES, MandateView, body=plan, key=key, on_behalf_of=on_behalf_of)


def find_mandate(mandate_id: str, wait_s: int = 0) -> Request[MandateView]:
    """Read a mandate. With `wait_s` the desk responds once its plan is decided."""
    query = {"wait": f"{wait_s}s"} if wait_s else {}
    return Request("GET", f"{_MANDATES}/{segment(mandate_id)}", MandateView, query=query, poll_s=wait_s)


def revoke_mandate(mandate_id: str) -> Request[MandateView]:
    """End a mandate at once."""
    return Request("POST", f"{_MANDATES}/{segment(mandate_id)}/revoke", MandateView)
