"""Grants and mandates, as rules and commits use them: those in force, new ones, and the use of earlier ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from sayso.core.policy.counters.charging import Counted
from sayso.core.policy.counters.readings import Wanted, list_counters, list_mandate_counters, name_scope, name_scope_of
from sayso.core.records.decisions import Actor
from sayso.core.records.permissions import COUNTER_PREFIX, Grant, GrantState, Mandate
from sayso.core.records.suspensions import Change
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import as_ms
from service.core.store.connection.pipeline import Pipeline, Script
from service.core.store.directory import Group
from service.core.store.keys import TenantKeys
from service.core.store.lua import read_script
from service.core.store.people import Reviewer
from service.core.store.suspensions.reading import try_read

_GRANTS = Script(read_script("grants"))
Kept = TypeVar("Kept", bound=Grant | Mandate)


class Kind(NamedTuple, Generic[Kept]):
    """Grants or mandates: how one is read, where they are kept, and the counters of all calls of one."""

    model: type[Kept]
    find_all: Callable[[TenantKeys], str]
    find_scope: Callable[[TenantKeys, str], str]
    name_scope: Callable[[Kept], str]
    list_counters: Callable[[Kept], Iterable[Wanted]]


GRANTS = Kind(
    Grant,
    lambda keys: keys.grants,
    lambda keys, scope: keys.grants_of(scope),
    lambda grant: name_scope(grant.rule_id, grant.agent),
    list_counters,
)
MANDATES = Kind(
    Mandate,
    lambda keys: keys.mandates,
    lambda keys, scope: keys.mandates_of(scope),
    name_scope_of,
    list_mandate_counters,
)


async def read_current(
    pipeline: Pipeline, keys: TenantKeys, kind: Kind[Kept], scopes: Sequence[str]
) -> Mapping[str, tuple[Kept, ...]]:
    """Return the grants or mandates in force by scope, with those whose people may no longer decide."""
    if not scopes:
        return {}
    read = [kind.find_all(keys), *(kind.find_scope(keys, scope) for scope in scopes)]
    seconds, micros, *replies = await pipeline.run(_GRANTS, read)
    now_ms = as_ms(seconds, micros)
    current: dict[str, tuple[Kept, ...]] = {}
    for scope, ids, raws in zip(scopes, replies[::2], replies[1::2], strict=True):
        held = pipeline.macs.verify(("HMGET", read[0], *ids), raws)
        grants = (try_read(kind.model, raw) for raw in held if raw)
        current[scope] = tuple(
            grant
            for grant in grants
            if grant is not None
            and (grant.find_state(now_ms) is GrantState.IN_FORCE or (isinstance(grant, Grant) and grant.tries(now_ms)))
        )
    return current


async def find_entitled(pipeline: Pipeline, keys: TenantKeys, granters: Iterable[Actor]) -> set[Actor]:
    """Return those who are active reviewers, and members of a group if one entitled them."""
    people = list(dict.fromkeys(granters))
    names = list(dict.fromkeys(name for by in people for name in (by.id, by.for_person) if name))
    groups = list(dict.fromkeys(group for by in people for group in by.groups))
    if not names:
        return set()
    reviewers = await pipeline.ask("HMGET", keys.reviewers, *names)
    kept = await pipeline.ask("HMGET", keys.groups, *groups) if groups else []
    held = (try_read(Reviewer, raw) for raw in reviewers if raw)
    active = {reviewer.name for reviewer in held if reviewer is not None and reviewer.active}
    read = (try_read(Group, raw) for raw in kept if raw)
    members = {(group.name, member) for group in read if group is not None for member in group.members}
    present = [by for by in people if {by.id, by.for_person or by.id} <= active]
    return {
        by for by in present if not by.groups or any((group, by.for_person or by.id) in members for group in by.groups)
    }


MOST_GRANTS = 200  # the grants of one rule for one agent that may be kept at a time
MOST_MANDATES = 200  # the mandates of one agent in one conversation that may be kept at a time


def note_grants(commit: Commit, keys: TenantKeys, counted: Counted, change: Change, now_ms: int) -> None:
    """Save a new grant or mandate, and the time at which earlier ones let a call run."""
    used = {charge.counter.split(".")[1] for charge in counted.added if charge.counter.startswith(COUNTER_PREFIX)}
    for grant_id in sorted(used):
        commit.write("ZADD", keys.grant_uses, now_ms, grant_id)
    if (grant := change.grant) is not None:
        scope = keys.grants_of(name_scope(grant.rule_id, grant.agent))
        held = f"{grant.agent} has {MOST_GRANTS} grants of rule {grant.rule_id}."
        commit.expect_room(scope, MOST_GRANTS - 1, f"{held} Revoke some, or decide without a grant.")
        commit.write("HSETNX", keys.grants, grant.id, grant.model_dump_json())
        commit.write("ZADD", scope, grant.until_ms, grant.id)
    if (mandate := change.mandate) is not None:
        scope = keys.mandates_of(name_scope_of(mandate))
        held = f"{mandate.agent} has {MOST_MANDATES} mandates in this conversation."
        commit.expect_room(scope, MOST_MANDATES - 1, f"{held} Revoke some, then approve.")
        commit.write("HSETNX", keys.mandates, mandate.id, mandate.model_dump_json())
        commit.write("ZADD", scope, mandate.until_ms, mandate.id)
