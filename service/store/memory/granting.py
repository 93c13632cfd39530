"""What a commit writes about grants and mandates: a new one, and the use of earlier ones."""

from sayso.core.policy.counters.charging import Counted
from sayso.core.records.permissions import COUNTER_PREFIX, Grant, Mandate
from sayso.core.records.suspensions import Change
from sayso.features.permissions.grants import name_scope
from sayso.features.permissions.mandates import name_scope_of
from service.store.connection.commits import Commit
from service.store.keys import TenantKeys

MOST_GRANTS = 200
"""The grants of one rule for one agent that may be kept at a time."""

MOST_MANDATES = 200
"""The mandates of one agent in one conversation that may be kept at a time."""


def note_grants(commit: Commit, keys: TenantKeys, counted: Counted, change: Change, now_ms: int) -> None:
    """Save a new grant or mandate, and the time at which earlier ones let a call run."""
    used = {charge.counter.split(".")[1] for charge in counted.added if charge.counter.startswith(COUNTER_PREFIX)}
    for grant_id in sorted(used):
        commit.write("ZADD", keys.grant_uses, now_ms, grant_id)
    if change.grant is not None:
        _save_grant(commit, keys, change.grant)
    if change.mandate is not None:
        _save_mandate(commit, keys, change.mandate)


def _save_mandate(commit: Commit, keys: TenantKeys, made: Mandate) -> None:
    scope = keys.mandates_of(name_scope_of(made))
    full = f"{made.agent} has {MOST_MANDATES} mandates in this conversation. Revoke some, then approve."
    commit.expect_room(scope, MOST_MANDATES - 1, full)
    commit.write("HSETNX", keys.mandates, made.id, made.model_dump_json())
    commit.write("ZADD", scope, made.until_ms, made.id)


def _save_grant(commit: Commit, keys: TenantKeys, made: Grant) -> None:
    scope = keys.grants_of(name_scope(made.rule_id, made.agent))
    full = f"{made.agent} has {MOST_GRANTS} grants of rule {made.rule_id}. Revoke some, or decide without a grant."
    commit.expect_room(scope, MOST_GRANTS - 1, full)
    commit.write("HSETNX", keys.grants, made.id, made.model_dump_json())
    commit.write("ZADD", scope, made.until_ms, made.id)
