"""Who can decide the items of a bucket, and how many items one reviewer can decide."""

from collections.abc import Iterable
from functools import lru_cache

from sayso.errors import SaysoError
from sayso.records.decisions import Actor, ActorKind, Decision
from sayso.records.items import Item
from sayso.records.suspensions import RunRef, SuspensionRecord
from sayso.records.terms import Terms
from sayso.transitions.decision_checks import check_reviewer
from service.store.suspensions.buckets import Bucket
from service.store.suspensions.facets import Audience
from service.wiring import Wiring

MOST_SHOWN = 999


def may_decide(audience: Audience, reviewer: Actor) -> bool:
    """Return whether the desk takes a decision of this reviewer."""
    try:
        check_reviewer(*_make_example(audience), reviewer)
    except SaysoError:
        return False
    return True


def count_open(buckets: Iterable[Bucket], reviewer: Actor) -> int:
    """Return how many items the reviewer can decide."""
    counts: dict[Audience, int] = {}
    for facets, count in buckets:
        counts[facets.audience] = counts.get(facets.audience, 0) + count
    return sum(count for audience, count in counts.items() if may_decide(audience, reviewer))


async def count_mine(wiring: Wiring, reviewer: Actor, *, fresh: bool = False) -> int:
    """Return how many open items the reviewer can decide; all pending runs where they are not in buckets."""
    buckets = await wiring.buckets.read(fresh=fresh)
    return await wiring.runs.count_pending() if buckets is None else count_open(buckets, reviewer)


def show_count(count: int) -> str:
    """Return a count as pages show it."""
    return f"{MOST_SHOWN}+" if count > MOST_SHOWN else str(count)


@lru_cache(4096)
def _make_example(audience: Audience) -> tuple[SuspensionRecord, Item]:
    """Return an item of this audience, with only the fields that its reviewers depend on."""
    actors = [Actor.model_construct(id=by, kind=ActorKind.HUMAN, for_person=person) for by, person in audience.decided]
    terms = Terms.model_construct(reviewers=audience.reviewers, no_self_approval=audience.no_self_approval)
    item = Item.model_construct(terms=terms, decisions=tuple(Decision.model_construct(by=one) for one in actors))
    return SuspensionRecord.model_construct(run=RunRef.model_construct(owner=audience.owner)), item
