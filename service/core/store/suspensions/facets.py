"""Facets of open items; items with the same ones share a bucket, so that filters and counts read no records."""

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord, Who
from sayso.core.records.terms import FallbackAction
from sayso.core.transitions.quorum import needs_confirmation

_PREFIX = "sus_"


class Audience(NamedTuple):
    """What says who can decide: the terms, the requester, and who has decided already (and for whom).

    `person` is whom the agent acts for, proven by a signed token; empty otherwise. `key_owner` owns the requester's
    key, and `maker` made it where the terms refuse its maker. `confirmer` has still to confirm the call.
    """

    reviewers: tuple[str, ...] = ()
    no_self_approval: bool = True
    owner: str = ""
    decided: tuple[tuple[str, str], ...] = ()
    person: str = ""
    key_owner: str = ""
    maker: str = ""
    confirmer: str = ""


class Facets(NamedTuple):
    """What the items of a bucket have in common."""

    tool: str
    agent: str
    audience: Audience
    subagent: str = ""
    doubt: bool = False
    escalated: bool = False
    unattended: bool = False


class Place(NamedTuple):
    """The bucket of an open item, and its deadline there."""

    facets: Facets
    deadline_at_ms: int


class OpenItem(NamedTuple):
    """An open item as a bucket lists it; the order is that of the inbox."""

    deadline_at_ms: int
    suspension_id: str
    item_id: str


def find_facets(record: SuspensionRecord, item: Item) -> Facets:
    """Return the facets of an open item."""
    terms = item.terms
    run, who = record.run, record.run.who or Who()
    decided = {(decision.by.id, decision.by.for_person) for decision in item.decisions}
    # who made the credential of a decision, where it counts as theirs
    decided |= {(decision.by.counts_as, "") for decision in item.decisions if decision.by.counts_as}
    return Facets(
        tool=item.tool.name,
        agent=run.agent,
        audience=Audience(
            item.deciders if terms.quorum.approve or terms.confirm_by is None else (terms.confirm_by,),
            terms.no_self_approval,
            run.owner,
            tuple(sorted(decided)),
            who.person or "",
            who.owner or "",
            run.key_maker if terms.no_maker_approval else "",
            terms.confirm_by or "" if needs_confirmation(item) else "",
        ),
        subagent=item.subagent or "",
        doubt=item.doubt is not None,
        escalated=item.escalated > 0,
        unattended=terms.fallback.action is FallbackAction.APPROVE,
    )


def list_places(record: SuspensionRecord | None) -> Mapping[str, Place]:
    """Return the place of each open item by its member of the bucket; none unless the suspension is in the inbox."""
    if record is None or record.status is not Status.PENDING or record.offers_undo:
        return {}
    return {
        name_member(record.id, item.item_id): Place(find_facets(record, item), item.terms.deadline_at_ms)
        for item in record.items
        if item.open
    }


@lru_cache(4096)
def name_bucket(facets: Facets) -> str:
    """Return the name of the bucket with these facets."""
    return sha256(write_facets(facets).encode()).hexdigest()[:32]


@lru_cache(4096)
def write_facets(facets: Facets) -> str:
    """Return the stored form, without the empty names at the end of the audience, as earlier versions write it."""
    tool, agent, audience, *others = facets
    named = list(audience)
    while named[-1] == "":
        named.pop()
    return json.dumps((tool, agent, named, *others), ensure_ascii=False, separators=(",", ":"))


@lru_cache(4096)
def read_facets(stored: str) -> Facets:
    """Return the facets of a stored form."""
    tool, agent, (reviewers, no_self_approval, owner, decided, *people), *others = json.loads(stored)
    pairs = tuple((by, absent) for by, absent in decided)
    return Facets(tool, agent, Audience(tuple(reviewers), no_self_approval, owner, pairs, *people), *others)


def name_member(suspension_id: str, item_id: str) -> str:
    """Return an item's member of its bucket, without what all ids begin with: it saves 34 bytes an item."""
    return f"{suspension_id.removeprefix(_PREFIX)} {item_id}"


def read_member(member: str, deadline_at_ms: int) -> OpenItem:
    """Return the item of a member."""
    suspension_id, _, item_id = member.rpartition(" ")
    return OpenItem(deadline_at_ms, f"{_PREFIX}{suspension_id}", item_id)
