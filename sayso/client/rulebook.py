"""Requests and responses for rules: replays, versions, grants and mandates."""

from collections.abc import Mapping

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.models import Empty
from sayso.wire.rulebook import (
    GrantList,
    GrantView,
    MandateList,
    MandateView,
    ReplayView,
    ShadowsView,
    VersionList,
    VersionText,
)

NO_LISTS: Mapping[str, str] = {}
_GRANTS, _MANDATES = "/api/v1/grants", "/api/v1/mandates"
_REPLAYS, _VERSIONS = "/api/v1/policy/replays", "/api/v1/policy/versions"
_SHADOW = "/api/v1/policy/shadow"


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


LIST_VERSIONS = Request("GET", _VERSIONS, VersionList)


def attest_rules(text: str, file: str, lists: Mapping[str, str] = NO_LISTS) -> Request[VersionText]:
    """Attest exactly these bytes; `lists` are the texts of the files that their lists name."""
    body: JsonObject = {"text": text, "file": file, "lists": dict(lists)}
    return Request("POST", "/api/v1/policy/attestations", VersionText, body=body)


def read_version(version: str) -> Request[VersionText]:
    """Read a version with its text."""
    return Request("GET", f"{_VERSIONS}/{segment(version)}", VersionText)


def restore_version(version: str, replaces: str) -> Request[VersionText]:
    """Put an earlier version back in force in place of `replaces`."""
    body: JsonObject = {"replaces": replaces}
    return Request("POST", f"{_VERSIONS}/{segment(version)}/restore", VersionText, body=body)


READ_SHADOW = Request("GET", _SHADOW, ShadowsView)


def begin_shadow(version: str) -> Request[VersionText]:
    """Put a version in shadow."""
    body: JsonObject = {"version": version}
    return Request("POST", _SHADOW, VersionText, body=body)


def begin_file_shadow(text: str, file: str, lists: Mapping[str, str] = NO_LISTS) -> Request[VersionText]:
    """Put a file of rules in shadow; `lists` are the texts of the files that its lists name."""
    body: JsonObject = {"text": text, "file": file, "lists": dict(lists)}
    return Request("POST", _SHADOW, VersionText, body=body)


def end_shadow(version: str) -> Request[Empty]:
    """End the candidate in shadow."""
    return Request("POST", f"{_SHADOW}/{segment(version)}/end", Empty)


def promote_shadow(version: str, replaces: str) -> Request[VersionText]:
    """Put the candidate in shadow in force in place of `replaces`."""
    body: JsonObject = {"replaces": replaces}
    return Request("POST", f"{_SHADOW}/{segment(version)}/promote", VersionText, body=body)


def report_shadow(version: str | None = None, path: str | None = None) -> Request[ReplayView]:
    """Count what a candidate would have done; by default that in shadow, else the last one."""
    body: JsonObject = {"version": version, "sum": path}
    return Request("POST", f"{_SHADOW}/report", ReplayView, body=body)


LIST_GRANTS = Request("GET", _GRANTS, GrantList)


def confirm_grant(grant_id: str) -> Request[GrantView]:
    """Grant together with the people who did."""
    return Request("POST", f"{_GRANTS}/{segment(grant_id)}/confirm", GrantView)


def revoke_grant(grant_id: str) -> Request[GrantView]:
    """End a grant at once."""
    return Request("POST", f"{_GRANTS}/{segment(grant_id)}/revoke", GrantView)


def reinstate_grant(grant_id: str) -> Request[GrantView]:
    """Overrule the denial that suspends a learned grant."""
    return Request("POST", f"{_GRANTS}/{segment(grant_id)}/reinstate", GrantView)


LIST_MANDATES = Request("GET", _MANDATES, MandateList)


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
