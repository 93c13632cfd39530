"""Standing grants: list, confirm and revoke them. A decision makes one, in its own commit; Sayso proposes others."""

from collections import Counter
from collections.abc import Callable

from sayso.errors import Conflict, NotAllowed, NotFound, SelfApproval
from sayso.policy.engine import Policy
from sayso.policy.grants.covering import digest_rule, find_granting
from sayso.records.decisions import Actor, ActorKind
from sayso.records.memory.grants import Grant, GrantState
from sayso.sentences.rulebook.grants import describe_grant_state
from sayso.transitions.deciding import find_item
from sayso.transitions.decision_checks import entitle
from service.desk.grants.mandating import Mandating
from service.store.memory.grants import GrantStore, Use
from service.store.memory.lessons import Lessons, Trial
from service.store.suspensions.saving import Suspensions


class Granting:
    """The grants of one tenant, as people see and change them, and its mandates."""

    def __init__(
        self,
        store: GrantStore[Grant],
        lessons: Lessons,
        suspensions: Suspensions,
        policy: Callable[[], Policy],
        mandates: Mandating,
    ) -> None:
        self._store, self._suspensions, self._policy = store, suspensions, policy
        self.lessons, self.mandates = lessons, mandates

    async def now_ms(self) -> int:
        return await self._store.now_ms()

    async def list_uses(self) -> list[Use[Grant]]:
        """Return the grants with their use, the latest first; those that ended a month ago are deleted."""
        await self._store.forget_old(await self._store.now_ms())
        return await self._store.list_uses()

    async def find_use(self, grant_id: str) -> Use[Grant]:
        """Return one grant with its use; raises `NotFound`."""
        found = next((one for one in await self._store.list_uses() if one.grant.id == grant_id), None)
        if found is None:
            raise _unknown(grant_id)
        return found

    async def count_ready(self) -> Counter[str]:
        """Return how many proposed grants wait for a person alone, by rule."""
        learned, now_ms = await self.lessons.list_learned(), await self._store.now_ms()
        trials = await self.lessons.read_trials(learned)
        open_ = (one for one in learned if one.tries(now_ms) and not self.find_void(one))
        return Counter(one.rule_id for one in open_ if is_ready(one, trials[one.id]))

    def find_void(self, grant: Grant) -> bool:
        """Return whether the rule of a grant is gone or changed, so that it lets nothing run."""
        rule = find_granting(self._policy().rules, grant.rule_id)
        return rule is None or digest_rule(rule) != grant.rule_digest

    async def revoke(self, grant_id: str, by: Actor) -> Grant:
        """End a grant at once, also for calls that it allowed and that have not started; repeated, change nothing.

        Raises `NotFound`, and `NotAllowed` for an agent.
        """
        _check_person(by)
        now_ms = await self._store.now_ms()

        def end(known: Grant) -> Grant:
            if known.find_state(now_ms) in (GrantState.REVOKED, GrantState.ENDED, GrantState.SUSPENDED):
                return known
            return known.model_copy(update={"revoked_by": by.id, "revoked_at_ms": now_ms})

        revoked = await self._store.change(grant_id, end)
        if revoked is None:
            raise _unknown(grant_id)
        return revoked

    async def confirm(self, grant_id: str, by: Actor) -> Grant:
        """Add a person to a grant that waits for one, or that Sayso proposed; the first one starts its time.

        Raises `NotFound`, `NotAllowed` and `SelfApproval` as a decision on its item does, and `Conflict` for a grant
        that does not wait, has changed rules, has this person already, or has not shown enough on probation.
        """
        _check_person(by)
        found = await self._store.find(grant_id)
        if found is None:
            raise _unknown(grant_id)
        record = (await self._suspensions.read(found.suspension_id)).record
        item = find_item(record, found.item_id)
        if item.terms.no_self_approval and by.id == found.owner:
            raise SelfApproval(owner=found.owner)
        entitled = entitle(record, item, by)
        if entitled is None:
            raise NotAllowed(f"Only {', '.join(item.terms.reviewers)} can grant this. Ask one of them.")
        if self.find_void(found):
            raise Conflict(f"The rule {found.rule_id} has changed since, so the grant is void. Revoke it.")
        _check_trial(found, (await self.lessons.read_trials([found])).get(grant_id, Trial()))
        now_ms, granter = await self._store.now_ms(), entitled

        def add(known: Grant) -> Grant:
            if known.learned is not None and known.find_state(now_ms) is GrantState.PROBATION:
                begun = {"at_ms": now_ms, "until_ms": now_ms + known.learned.lasts_s * 1000}
                return known.model_copy(update={**begun, "granters": (granter,)})
            if known.find_state(now_ms) is not GrantState.WAITING:
                words = describe_grant_state(known.find_state(now_ms))
                raise Conflict(f"Grant {known.id} does not wait for anybody: it is {words}.")
            people = {name for one in known.granters for name in (one.id, one.for_person) if name}
            if people & {granter.id, granter.for_person}:
                raise Conflict("You have granted it already; it waits for somebody else.")
            return known.model_copy(update={"granters": (*known.granters, granter)})

        confirmed = await self._store.change(grant_id, add)
        if confirmed is None:
            raise _unknown(grant_id)
        return confirmed


def is_ready(grant: Grant, trial: Trial) -> bool:
    """Return whether people may put a proposed grant in force: they approved enough of what it would have allowed."""
    return grant.learned is not None and trial.approved >= grant.learned.probation


def _check_trial(grant: Grant, trial: Trial) -> None:
    if grant.learned is not None and grant.denial is None and not grant.granters and not is_ready(grant, trial):
        raise Conflict(
            f"Grant {grant.id} is on probation: people have approved {trial.approved} of the {grant.learned.probation} "
            "calls that it needs. Wait for more, or grant like calls beside an approval."
        )


def _check_person(by: Actor) -> None:
    if by.kind is not ActorKind.HUMAN:
        raise NotAllowed("An agent's key can neither grant nor revoke. Sign in as a reviewer.", kind=by.kind)


def _unknown(grant_id: str) -> NotFound:
    return NotFound(f"There is no grant {grant_id!r}. List the grants to see their ids.")
