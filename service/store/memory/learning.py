"""What commits write about learned grants: decided calls, what grants on probation would have allowed, suspensions."""

from collections import Counter
from collections.abc import Iterator

from sayso.core.clock import DAY_MS
from sayso.core.records.decisions import ActorKind
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.features.permissions.grants import name_scope
from sayso.features.permissions.learning import Answered, read_answer
from service.store.connection.commits import Commit, Update
from service.store.keys import TenantKeys

MOST_LESSONS = 500
"""The decided calls of a rule for an agent from which grants are learned."""

_KEPT_MS = 30 * DAY_MS
ASKED = "asked"
TRIED = (ASKED, *Answered)
"""What is counted of a grant on probation."""


def note_lessons(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Save what the change teaches; most changes teach nothing."""
    for grant in update.change.suspended:
        commit.write("HSET", keys.grants, grant.id, grant.model_dump_json())
        commit.write("ZREM", keys.grants_of(name_scope(grant.rule_id, grant.agent)), grant.id)
    trials: list[str] = []
    for prior, record in update.pairs:
        for was, item in _list_teaching(prior, record):
            trials += _list_trials(was, item)
            answer = read_answer(item)
            if was is not None and was.open and not item.open and item.drill is None and answer is not None:
                scope = name_scope(item.terms.rule_id or "", record.run.agent)
                commit.write("RPUSH", keys.lessons(scope), f"{record.id} {item.item_id} {answer}")
                commit.write("LTRIM", keys.lessons(scope), -MOST_LESSONS, -1)
                commit.write("PEXPIRE", keys.lessons(scope), _KEPT_MS)
                commit.write("SADD", keys.learning, scope)
    for field, count in Counter(trials).items() if trials else ():
        commit.write("HINCRBY", keys.grant_trials, field, count)


def _list_teaching(before: SuspensionRecord | None, after: SuspensionRecord) -> Iterator[tuple[Item | None, Item]]:
    """Yield the changed items of rules that learn, each with the item before it or None."""
    earlier = before.items if before is not None else ()
    if all(item.learning is None for item in (*earlier, *after.items)):
        return
    known = {item.item_id: item for item in earlier}
    for item in after.items:
        was = known.get(item.item_id)
        if was is not item and (item.learning is not None or (was is not None and was.learning is not None)):
            yield was, item


def _list_trials(was: Item | None, item: Item) -> Iterator[str]:
    """Yield what counts for grants on probation: each call when it is asked about, and how people decided it.

    A reviewer's change of the arguments may renew an item, which then counts as edited.
    """
    if was is not None and not was.open:
        return
    before, now = _list_grants(was), _list_grants(item)
    timed_out = item.outcome is not None and item.outcome.by.kind is ActorKind.TIMEOUT
    if item.open or (was is None and timed_out):
        yield from (f"{grant_id} {ASKED}" for grant_id in now if grant_id not in before)
    answer = read_answer(item) if not item.open else None
    for grant_id in before:
        if grant_id not in now:
            yield f"{grant_id} edited"
        elif answer is not None:
            yield f"{grant_id} {answer}"


def _list_grants(item: Item | None) -> tuple[str, ...]:
    return item.learning.would_allow if item is not None and item.learning is not None else ()
