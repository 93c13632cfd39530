"""Who can decide open items, how many of them one person can, and their index in a store of an earlier version."""

import asyncio
from functools import lru_cache
from math import inf

import structlog

from sayso.core.clock import now_ms
from sayso.core.records.decisions import Actor, ActorKind, Decision, DecisionAction, Delegate
from sayso.core.records.items import Item, ItemTool
from sayso.core.records.suspensions import RunRef, Status, SuspensionRecord, Who
from sayso.core.records.terms import Terms
from sayso.core.transitions.decision_checks import check_reviewer
from sayso.errors import SaysoError, Unavailable
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.facets import Audience, Facets
from service.core.wiring import Wiring

_AGAIN_AFTER_S = 1.0
_LOG = structlog.get_logger(__name__)

MOST_SHOWN = 999

_RUN = RunRef(id="", agent="", owner="", thread_id="")
_RECORD = SuspensionRecord(id="", tenant="", status=Status.PENDING, created_at_ms=0, updated_at_ms=0, run=_RUN)
_TOOL = ItemTool(name="", args={}, definition="")
_ITEM = Item(call_id="", tool=_TOOL, item_id="", terms=Terms(rule_version="", deadline_at_ms=0), digest="")
_DECISION = Decision(
    id="",
    suspension_id="",
    suspension_version=1,
    item_id="",
    action=DecisionAction.APPROVE,
    args_digest="",
    by=Actor(id="", kind=ActorKind.HUMAN),
    at_ms=0,
)


def may_decide(facets: Facets, reviewer: Actor) -> bool:
    """Return whether the desk takes a decision of this reviewer, or waits for their confirmation."""
    limited = isinstance(reviewer, Delegate) and reviewer.is_limited
    return _may_decide(facets.audience, reviewer, *((facets.tool, facets.agent) if limited else ("", "")))


@lru_cache(8192)
def _may_decide(audience: Audience, reviewer: Actor, tool: str, agent: str) -> bool:
    if reviewer.id == audience.confirmer:
        return True
    try:
        check_reviewer(*_make_example(audience, tool, agent), reviewer)
    except SaysoError:
        return False
    return True


async def count_mine(wiring: Wiring, reviewer: Actor, since_ms: float = inf) -> int:
    """Return how many open items the reviewer can decide; all pending runs where they are not in buckets."""
    if isinstance(reviewer, Delegate) and reviewer.is_limited:
        buckets = await wiring.part(Buckets).read(since_ms) or ()
        return sum(bucket.size for bucket in buckets if may_decide(bucket.facets, reviewer))
    counts = await wiring.part(Buckets).count_audiences(since_ms)
    if counts is None:
        return await wiring.runs.count_pending()
    return sum(count for audience, count in counts.items() if _may_decide(audience, reviewer, "", ""))


def show_count(count: int) -> str:
    """Return a count as pages show it."""
    return f"{MOST_SHOWN}+" if count > MOST_SHOWN else str(count)


@lru_cache(4096)
def _make_example(audience: Audience, tool: str, agent: str) -> tuple[SuspensionRecord, Item]:
    """Return an item of this audience; only the fields that its reviewers depend on have a meaning."""
    limits = {"reviewers": audience.reviewers, "no_self_approval": audience.no_self_approval}
    limits |= {"no_maker_approval": bool(audience.maker)}
    terms = _ITEM.terms.model_copy(update=limits)
    decisions = tuple(
        _DECISION.model_copy(update={"by": Actor(id=by, kind=ActorKind.HUMAN, for_person=person)})
        for by, person in audience.decided
    )
    who = Who(person=audience.person or None, owner=audience.key_owner or None)
    run = _RECORD.run.model_copy(
        update={"agent": agent, "owner": audience.owner, "who": who, "key_maker": audience.maker}
    )
    made = {"terms": terms, "decisions": decisions, "tool": _TOOL.model_copy(update={"name": tool})}
    return _RECORD.model_copy(update={"run": run}), _ITEM.model_copy(update=made)


async def file_open_items(wiring: Wiring) -> None:
    """Put all open items into their buckets, once in a store; wait for the store."""
    while True:
        try:
            filed = await wiring.part(Buckets).complete(now_ms())
        except Unavailable:
            await asyncio.sleep(_AGAIN_AFTER_S)
            continue
        if filed:
            _LOG.info("open_items_filed", count=filed)
        return
