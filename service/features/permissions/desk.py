"""Grants and mandates: list, confirm and revoke them, and propose grants from the latest decisions of people."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import structlog

from sayso.core.policy.counters.readings import Wanted, name_scope
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import describe_item
from sayso.core.records.decisions import Actor, ActorKind, Decision, DecisionRequest
from sayso.core.records.permissions import Denial, Grant, GrantState, Mandate, OverruledDenial
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.decision_checks import check_other_than_requester, entitle
from sayso.errors import Conflict, NotAllowed, NotFound
from sayso.features.permissions.grants import digest_rule, find_granting
from sayso.features.permissions.judging import find_learned, learns, suspend_grants
from sayso.features.permissions.learning import Answered, Lesson, propose_grants, read_lesson
from sayso.features.permissions.making import decide_with_grant, find_changed, find_confining
from sayso.features.permissions.text import describe_grant_state
from service.core.store.permissions import GRANTS, MANDATES
from service.core.store.tenants import Consequences, Read, Recall
from service.core.wiring import Wiring
from service.features.permissions.store import GrantStore, Lessons, Place, Trial, Use


class Mandating:
    """The mandates of one tenant, as people and their agents see and end them."""

    def __init__(self, wiring: Wiring) -> None:
        self._store = GrantStore(wiring.store, wiring.desk.suspensions.recall, MANDATES)
        self._runs, self._policy = wiring.runs, wiring.rules.policy

    async def now_ms(self) -> int:
        return await self._store.now_ms()

    async def list_uses(self) -> list[Use[Mandate]]:
        """Return the mandates with their use, the latest first; those that ended a month ago are deleted."""
        now_ms = await self._store.now_ms()
        await self._store.forget_old(now_ms)
        return await self._end_with_runs(await self._store.list_uses(), now_ms)

    async def find_use(self, mandate_id: str) -> Use[Mandate] | None:
        """Return one mandate with its use; None if no plan of this id was approved."""
        mandate = await self._store.find(mandate_id)
        if mandate is None:
            return None
        return (await self._end_with_runs(await self._store.add_uses([mandate]), await self._store.now_ms()))[0]

    def find_void(self, mandate: Mandate) -> bool:
        """Return whether a rule that permitted a mandate is gone or changed, so that it silences that rule no more."""
        return find_changed(self._policy(), mandate.envelope) is not None

    async def revoke(self, mandate_id: str, by: Actor) -> Mandate:
        """End a mandate at once, also for calls that it allowed and that have not started; repeated, change nothing.

        Every person may, and the agent's own key. Raises `NotFound`, also for another agent.
        """
        revoked = await self._store.revoke(mandate_id, by.id, (GrantState.IN_FORCE,))
        if revoked is None:
            raise NotFound(f"There is no mandate {mandate_id!r} in force. List the mandates to see their ids.")
        return revoked

    async def _end_with_runs(self, uses: Sequence[Use[Mandate]], now_ms: int) -> list[Use[Mandate]]:
        """Return the mandates; one of a single run ends with it."""
        ends = await asyncio.gather(*(self._find_end(use.grant, now_ms) for use in uses))
        return [
            use if end is None else use._replace(grant=use.grant.model_copy(update={"until_ms": end}))
            for use, end in zip(uses, ends, strict=True)
        ]

    async def _find_end(self, mandate: Mandate, now_ms: int) -> int | None:
        if not mandate.envelope.run_id or mandate.find_state(now_ms) is not GrantState.IN_FORCE:
            return None
        try:
            run = await self._runs.read(mandate.envelope.run_id)
        except NotFound:
            return mandate.at_ms
        return run.updated_at_ms if run.status.ended else None


_LASTING = (GrantState.PROBATION, GrantState.WAITING, GrantState.IN_FORCE)


class Granting:
    """The grants of one tenant, as people see and change them, and its mandates."""

    def __init__(self, wiring: Wiring) -> None:
        self._suspensions, self._policy = wiring.desk.suspensions, wiring.rules.policy
        self._store = GrantStore(wiring.store, self._suspensions.recall, GRANTS)
        self.lessons, self.mandates = wiring.part(Lessons), Mandating(wiring)

    async def now_ms(self) -> int:
        return await self._store.now_ms()

    async def list_uses(self) -> list[Use[Grant]]:
        """Return the grants with their use, the latest first; those that ended a month ago are deleted."""
        await self._store.forget_old(await self._store.now_ms())
        return await self._store.list_uses()

    async def find_use(self, grant_id: str) -> Use[Grant]:
        """Return one grant with its use; raises `NotFound`."""
        use = next((use for use in await self._store.list_uses() if use.grant.id == grant_id), None)
        if use is None:
            raise _unknown(grant_id)
        return use

    async def list_waiting(self, person: str) -> list[Grant]:
        """Return the proposals that may be put in force, and the grants that another person confirms."""
        now_ms = await self._store.now_ms()
        kept = [grant for grant in await self._store.list_all() if not self.find_void(grant)]
        trials = await self.lessons.read_trials(grant for grant in kept if grant.tries(now_ms))
        ready = [grant for grant in kept if grant.id in trials and is_ready(grant, trials[grant.id])]
        shared = [grant for grant in kept if grant.find_state(now_ms) is GrantState.WAITING]
        return [*ready, *(grant for grant in shared if person not in [granter.id for granter in grant.granters])]

    async def count_ready(self) -> Counter[str]:
        """Return how many proposed grants wait for a person alone, by rule."""
        learned, now_ms = await self.lessons.list_learned(), await self._store.now_ms()
        trials = await self.lessons.read_trials(learned)
        open_ = (grant for grant in learned if grant.tries(now_ms) and not self.find_void(grant))
        return Counter(grant.rule_id for grant in open_ if is_ready(grant, trials[grant.id]))

    def find_void(self, grant: Grant) -> bool:
        """Return whether the rule of a grant is gone or changed, so that it lets nothing run."""
        rule = find_granting(self._policy().rules, grant.rule_id)
        return rule is None or digest_rule(rule) != grant.rule_digest

    async def revoke(self, grant_id: str, by: Actor) -> Grant:
        """End a grant at once, also for calls that it allowed and that have not started; repeated, change nothing.

        Raises `NotFound`, and `NotAllowed` for an agent.
        """
        _check_person(by)
        revoked = await self._store.revoke(grant_id, by.id, _LASTING)
        if revoked is None:
            raise _unknown(grant_id)
        return revoked

    async def confirm(self, grant_id: str, by: Actor) -> Grant:
        """Add a person to a grant that waits for one, or that Sayso proposed; the first one starts its time.

        Raises `NotFound`, `NotAllowed` and `SelfApproval` as a decision on its item does, and `Conflict` for a grant
        that does not wait, has changed rules, has this person already, or has not shown enough on probation.
        """
        grant, granter = await self._entitle(grant_id, by)
        trial = (await self.lessons.read_trials([grant])).get(grant_id, Trial())
        if grant.learned is not None and grant.denial is None and not grant.granters and not is_ready(grant, trial):
            approved = f"people have approved {trial.approved} of the {grant.learned.probation} calls that it needs"
            raise Conflict(
                f"Grant {grant.id} is on probation: {approved}. Wait for more, or grant like calls beside an approval."
            )
        now_ms = await self._store.now_ms()

        def add(known: Grant) -> Grant:
            if known.learned is not None and known.find_state(now_ms) is GrantState.PROBATION:
                begun = {"at_ms": now_ms, "until_ms": now_ms + known.learned.lasts_s * 1000}
                return known.model_copy(update={**begun, "granters": (granter,)})
            if known.find_state(now_ms) is not GrantState.WAITING:
                words = describe_grant_state(known.find_state(now_ms))
                raise Conflict(f"Grant {known.id} does not wait for anybody: it is {words}.")
            people = {name for person in known.granters for name in (person.id, person.for_person) if name}
            if people & {granter.id, granter.for_person}:
                raise Conflict("You have granted it already; it waits for somebody else.")
            return known.model_copy(update={"granters": (*known.granters, granter)})

        return await self._change(grant_id, add)

    async def reinstate(self, grant_id: str, by: Actor, denials: Sequence[Denial] = ()) -> Grant:
        """Overrule the denial that suspends a learned grant; this person grants it anew, or it is on probation again.

        The first of the `denials` that nobody has overruled suspends it instead. Raises as `confirm` does, and
        `Conflict` for a grant that no denial suspends, that has ended, or that another one of like calls has replaced.
        """
        suspended, granter = await self._entitle(grant_id, by)
        now_ms = await self._store.now_ms()
        others = [other for other in await self.lessons.list_learned() if other.id != grant_id]
        for other in others:
            alike = _name_likeness(other) == _name_likeness(suspended)
            if alike and other.find_state(now_ms) in _LASTING:
                raise Conflict(f"Grant {other.id} of like calls has taken its place. Decide on that one.")

        def overrule(known: Grant) -> Grant:
            if known.denial is None or not known.can_return(now_ms):
                words = describe_grant_state(known.find_state(now_ms))
                raise Conflict(f"Grant {known.id} cannot be reinstated: it is {words}, or its time is over.")
            overruled = (*known.overruled, OverruledDenial(denial=known.denial, by=by.id, at_ms=now_ms))
            grant = known.model_copy(update={"overruled": overruled, "denial": None})
            if remaining := next((denial for denial in denials if not grant.has_overruled(denial)), None):
                return grant.model_copy(update={"denial": remaining})
            return grant.model_copy(update={"granters": (granter,)}) if grant.granters else grant

        return await self._change(grant_id, overrule)

    async def _change(self, grant_id: str, change: Callable[[Grant], Grant]) -> Grant:
        changed = await self._store.change(grant_id, change)
        if changed is None:
            raise _unknown(grant_id)
        return changed

    async def _entitle(self, grant_id: str, by: Actor) -> tuple[Grant, Actor]:
        """Return the grant, and the person as who may grant it; raises if nobody or this person may not."""
        _check_person(by)
        grant = await self._store.find(grant_id)
        if grant is None:
            raise _unknown(grant_id)
        record = (await self._suspensions.read(grant.suspension_id)).record
        item = find_item(record, grant.item_id)
        check_other_than_requester(record, item, by)
        entitled = entitle(record, item, by)
        if entitled is None:
            raise NotAllowed(f"Only {', '.join(item.deciders)} can grant this. Ask one of them.")
        if self.find_void(grant):
            raise Conflict(f"The rule {grant.rule_id} has changed since, so the grant is void. Revoke it.")
        return grant, entitled


def is_ready(grant: Grant, trial: Trial) -> bool:
    """Return whether people may put a proposed grant in force: they approved enough of what it would have allowed."""
    return grant.learned is not None and trial.approved >= grant.learned.probation


def _name_likeness(grant: Grant) -> tuple[str, str]:
    return grant.rule_id, grant.learned.like if grant.learned is not None else grant.id


def _check_person(by: Actor) -> None:
    if by.kind is not ActorKind.HUMAN:
        raise NotAllowed("An agent's key can neither grant nor revoke. Sign in as a reviewer.", kind=by.kind)


def _unknown(grant_id: str) -> NotFound:
    return NotFound(f"There is no grant {grant_id!r}. List the grants to see their ids.")


class Permissions(Consequences):
    """Grants, offers and mandates that decisions make, and learned grants that denials suspend."""

    async def find_denied(self, policy: Policy, item_id: str, read: Read, recall: Recall) -> tuple[Grant, ...]:
        """Return the learned grants that cover the call of an item."""
        if not learns(policy.rules):
            return ()
        record = await read()
        item = find_item(record, item_id)
        if item.learning is None or item.terms.rule_id is None:
            return ()
        scope = name_scope(item.terms.rule_id, record.run.agent)
        grants = (await recall([Wanted(scope, 0, grants=True)]))[scope].grants
        return find_learned(grants, item.terms.rule_id, describe_item(record, item, item.tool.args))

    def decide(
        self,
        policy: Policy,
        record: SuspensionRecord,
        decision: Decision,
        request: DecisionRequest,
        now_ms: int,
        lost_ms: int = 0,
    ) -> Change:
        return decide_with_grant(policy, record, decision, request, now_ms, lost_ms)

    def begin(self, record: SuspensionRecord, now_ms: int) -> Mandate | None:
        return find_confining(record, now_ms)


_RECORDS = 50

_LOG = structlog.get_logger(__name__)


async def propose_learned(wiring: Wiring) -> list[Grant]:
    """Propose what the new decisions suggest, and return it; a proposal lets nothing run.

    After a crash, the next decision on a call of the same rule and agent makes up for what is missed.
    """
    if not learns(wiring.rules.policy().rules):
        return []
    made: list[Grant] = []
    for scope in await wiring.feature(Granting).lessons.take_scopes(20):
        now_ms = await wiring.feature(Granting).now_ms()  # before the lessons are read: one that is not read is later
        lessons = await _read_lessons(wiring, await wiring.feature(Granting).lessons.list_items(scope))
        made += await _learn(wiring, lessons, now_ms) if lessons else []
    return made


async def reinstate(wiring: Wiring, grant_id: str, by: Actor) -> Grant:
    """Overrule the denial that suspends a learned grant, as a person who has read it.

    If people denied another call that it covers since it was proposed, it stays suspended by that one. Raises what
    `Granting.reinstate` raises.
    """
    known = (await wiring.feature(Granting).find_use(grant_id)).grant
    lessons = await _read_lessons(
        wiring, await wiring.feature(Granting).lessons.list_items(name_scope(known.rule_id, known.agent))
    )
    begun_ms = known.learned.proposed_at_ms if known.learned is not None else 0
    denials = [
        lesson.denial
        for lesson in lessons
        if lesson.denial is not None
        and lesson.at_ms >= begun_ms
        and find_learned([known], lesson.rule_id, lesson.event)
    ]
    return await wiring.feature(Granting).reinstate(grant_id, by, denials)


async def _learn(wiring: Wiring, lessons: Sequence[Lesson], now_ms: int) -> list[Grant]:
    """Propose grants; `lessons` are those of one rule for one agent."""
    store, last = wiring.feature(Granting).lessons, lessons[-1]
    known = [grant for grant in await store.list_learned() if grant.rule_id == last.rule_id]
    for lesson in lessons:
        if lesson.denial is None:
            continue
        prior = (grant for grant in known if grant.learned is not None and lesson.at_ms >= grant.learned.proposed_at_ms)
        free = (grant for grant in prior if grant.denial is None and not grant.has_overruled(lesson.denial))
        missed = find_learned(free, lesson.rule_id, lesson.event)
        await wiring.feature(Granting).lessons.suspend(suspend_grants(missed, lesson.denial))
    rule = next((rule for rule in wiring.rules.policy().rules if rule.rule_id == last.rule_id), None)
    if rule is None:
        return []
    made = [grant for grant in propose_grants(rule, lessons, known, now_ms) if await store.propose(grant)]
    for grant in made:
        _LOG.info("grant_proposed", grant=grant.id, rule=grant.rule_id, agent=grant.agent, tool=grant.tool)
    return made


async def _read_lessons(wiring: Wiring, places: Sequence[Place]) -> list[Lesson]:
    """Return the lessons at these places; none before one that is gone, erased or deleted, and was no approval."""
    lessons: list[Lesson] = []
    for begin in range(0, len(places), _RECORDS):
        page = places[begin : begin + _RECORDS]
        wanted = [*dict.fromkeys(place.suspension_id for place in page)]
        records = {record.id: record for record in await wiring.desk.suspensions.read_many(wanted)}
        for place in page:
            record = records.get(place.suspension_id)
            if record is not None and record.erasure is not None:
                record = None
            if record is None and place.answer != Answered.APPROVED:
                lessons.clear()
            lesson = read_lesson(record, find_item(record, place.item_id)) if record is not None else None
            lessons += [lesson] if lesson is not None else []
    return lessons
