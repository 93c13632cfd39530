"""Sign people in, add and deactivate them, with the rules that name them and the items that need their decision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sayso.core.policy.rules import ASKING, PolicyRule
from sayso.core.records.decisions import Actor, DecisionAction, list_filled
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import GROUP_PREFIX
from sayso.core.transitions.decision_checks import entitle, find_counted, list_agreeing, may_decide
from sayso.errors import Conflict, NotAuthenticated, TooManyRequests
from service.auth.reviewers import NAME_PATTERN, Origin, SignIn
from service.store.people import Reviewer
from service.store.suspensions.reading import split_readable
from service.wiring import Wiring

MOST_CHECKED = 1000
_SIGNED_IN = "signed_in"
_ASSENTS = (DecisionAction.APPROVE, DecisionAction.VALUE)


@dataclass(frozen=True)
class Shortage:
    """An open item for which too few people are left to approve it."""

    suspension_id: str
    item_id: str
    tool: str
    missing: int


async def sign_in(parts: Wiring, name: str, password: str, origin: Origin, door: str) -> SignIn:
    """Open a session for the right name and password; raises as `Reviewers.sign_in` does.

    A refusal keeps the name only if it can be one: nobody else's text, and seldom a password in the wrong field.
    """
    try:
        opened = await parts.reviewers.sign_in(name, password, origin)
    except (NotAuthenticated, TooManyRequests) as error:
        claimed = name if NAME_PATTERN.fullmatch(name) else ""
        await parts.activity.refuse(_SIGNED_IN, "", error.message, door=door, address=origin.address, target=claimed)
        raise
    by, client = opened.session.name, origin.client
    marks = {"client": client, "password_by": opened.password_by}
    await parts.activity.record(_SIGNED_IN, by, door=door, address=origin.address, **marks)
    return opened


async def add_reviewer(parts: Wiring, name: str, password: str, roles: tuple[str, ...], by: str = "") -> Reviewer:
    """Create a reviewer; raises `InvalidInput`, or `Conflict` for a name that is taken by a person or an agent."""
    keys = await parts.api_keys.list_all()
    if any(key.name.casefold() == name and key.kind != "reviewer" for key in keys):
        raise Conflict(f"An agent is named {name}, and names must not be confused. Choose another name.")
    return await parts.reviewers.add(name, password, roles, by)


async def deactivate_reviewer(parts: Wiring, name: str, by: str) -> Reviewer:
    """Deactivate a reviewer, end their sessions, and void their decisions on open items.

    Raises `NotFound`, or `Conflict` for oneself or the last admin.
    """
    if name == by:
        raise Conflict("You cannot deactivate yourself. Ask another admin, or add one first.")
    deactivated = await parts.reviewers.deactivate(name)
    await _void_decisions(parts, name)
    return deactivated


async def _void_decisions(parts: Wiring, name: str) -> None:
    """Void a person's decisions on open items, so that every page shows it. Each later decision checks it, too."""
    skip = 0
    while ids := await parts.runs.inbox(skip, MOST_CHECKED):
        skip += len(ids)
        records, _ = split_readable(await parts.desk.suspensions.read_page(ids))
        for record in records:
            if any(decision.by.id == name for item in record.items if item.open for decision in item.decisions):
                await parts.desk.void_decisions(record.id, (name,))


def list_duties(parts: Wiring, name: str, groups: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the rules in force that name a person or one of their groups."""
    names = {name, *(f"{GROUP_PREFIX}{group}" for group in groups)}
    policy = parts.rules.policy()
    asking = (rule for rule in policy.live if rule.action in ASKING)
    return tuple(rule.rule_id for rule in asking if not names.isdisjoint(_list_named(rule)))


async def find_shortages(parts: Wiring, leaving: str) -> list[Shortage]:
    """Return the open items that too few people could approve without this person, the most urgent first."""
    ids = await parts.runs.inbox(limit=MOST_CHECKED)
    records, _ = split_readable(await parts.desk.suspensions.read_page(ids))
    people = [person.name for person in await parts.reviewers.list_all() if person.active]
    actors = [await parts.reviewers.find_actor(name, "web") for name in people]
    return [shortage for record in records for shortage in _find_short(record, actors, leaving)]


def _list_named(rule: PolicyRule) -> Iterator[str]:
    yield from rule.terms.reviewers
    for step in rule.terms.escalate:
        yield from step.reviewers


def _find_short(record: SuspensionRecord, actors: Sequence[Actor], leaving: str) -> Iterator[Shortage]:
    for item in record.items:
        if item.outcome is None and any(actor.id == leaving and may_decide(record, item, actor) for actor in actors):
            missing = _count_missing(record, item, [actor for actor in actors if actor.id != leaving])
            if missing > 0:
                yield Shortage(record.id, item.item_id, item.tool.name, missing)


def _count_missing(record: SuspensionRecord, item: Item, actors: Sequence[Actor]) -> int:
    """Return how many approvals the item lacks if every one of these people approves it."""
    free = [entitle(record, item, actor) for actor in actors if may_decide(record, item, actor)]
    able = [actor for actor in free if actor is not None and find_counted(item, actor) is None]
    assents = [decision for decision in item.decisions if decision.action in _ASSENTS]
    agreeing = max((list_agreeing(item, decision) for decision in assents), key=len, default=[])
    each_of = item.terms.quorum.each_of
    unfilled = len(each_of) - len(list_filled(each_of, [*agreeing, *able]))
    return max(item.terms.quorum.approve - len(agreeing) - len(able), unfilled)
