"""Invitations: people outside the desk decide one item, by a link and a mailed code."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from sayso.core.records.decisions import Actor, ActorKind, Decision, DecisionAction
from sayso.core.records.proofs import OUTSIDE, Invitation
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.freezing import find_freeze
from sayso.core.transitions.outsiders import (
    decide_outside,
    enter_code,
    find_by_token,
    invite,
    revoke_invitation,
    send_code,
)
from sayso.errors import Conflict, Frozen
from service.core.desk.changes import build_idempotency
from service.core.desk.reviewing import Reviewing
from service.core.store.suspensions.saving import Saved, Verb

Step = Callable[[SuspensionRecord, int, int], Change]  # of the record, the time and the frozen time, ms


@dataclass(frozen=True)
class Inviting:
    """Operations of who invites, and of who is invited."""

    reviewing: Reviewing

    async def invite(
        self, suspension_id: str, item_id: str, invitation: Invitation, by: Actor, key: str | None = None
    ) -> Saved:
        """Save an invitation, whose mail is queued with it; a repeated `key` of the same reviewer invites once.

        Raises what the transition raises.
        """
        facts = ["invite", suspension_id, item_id, invitation.address, invitation.note, invitation.digest]
        seen = build_idempotency(by.id, key, [*facts], suspension_id)

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            return invite(record, item_id, invitation, by, now_ms, lost_ms)

        async with self.reviewing.ticking(suspension_id):
            verb = await self.reviewing.in_time(item_id, act)
            return await self.reviewing.changes.change(suspension_id, verb, seen)

    async def revoke_invitation(self, suspension_id: str, item_id: str, invitation_id: str, by: Actor) -> Saved:
        """End an invitation; raises what the transition raises."""

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            return revoke_invitation(record, item_id, invitation_id, by, now_ms)

        return await self.reviewing.changes.change(suspension_id, transition)

    async def send_code(self, suspension_id: str, item_id: str, token_hash: str, code_hash: str) -> Saved:
        """Save a code that is mailed next; raises what the transition raises, and as all that outsiders do `Frozen`."""

        def act(record: SuspensionRecord, now_ms: int, _lost_ms: int) -> Change:
            return send_code(record, item_id, token_hash, code_hash, now_ms)

        verb = await self._admit(item_id, token_hash, act)
        return await self.reviewing.changes.change(suspension_id, verb)

    async def enter_code(
        self, suspension_id: str, item_id: str, token_hash: str, code_hash: str, proof_hash: str
    ) -> Saved:
        """Take a code, right or wrong; `is_proven` says of the saved invitation which."""

        def act(record: SuspensionRecord, now_ms: int, _lost_ms: int) -> Change:
            return enter_code(record, item_id, token_hash, code_hash, proof_hash, now_ms)

        verb = await self._admit(item_id, token_hash, act)
        return await self.reviewing.changes.change(suspension_id, verb)

    async def decide_outside(
        self, suspension_id: str, item_id: str, action: str, message: str, token_hash: str, proof_hash: str
    ) -> Saved:
        """Record the decision of somebody outside; a repeated one counts once. Raises what the transition raises."""
        reviewing, decision_id = self.reviewing, f"dec_{sha256(token_hash.encode()).hexdigest()[:32]}"
        await reviewing.check()
        await reviewing.handing.prepare()

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            invitation = find_by_token(find_item(record, item_id), token_hash)
            decision = Decision(
                id=decision_id,
                suspension_id=suspension_id,
                suspension_version=record.version,
                item_id=item_id,
                action=DecisionAction(action),
                message=message or None,
                args_digest=invitation.digest,
                by=Actor(id=invitation.name, kind=ActorKind.HUMAN, channel=OUTSIDE),
                at_ms=now_ms,
                idempotency_key=invitation.id,
            )
            return decide_outside(record, decision, token_hash, proof_hash, now_ms, lost_ms)

        async with reviewing.ticking(suspension_id):
            freezes = await reviewing.changes.freezes()
            handing = reviewing.handing.hand_on(await self._admit(item_id, token_hash, act), freezes)
            return await reviewing.changes.change_counted(suspension_id, item_id, handing)

    async def _admit(self, item_id: str, token_hash: str, act: Step) -> Verb:
        """Return the transition of somebody outside, while nothing is frozen and who invited them is active."""
        reviewing = self.reviewing
        freezes, inactive = await reviewing.changes.freezes(), await reviewing.changes.suspensions.find_inactive()

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            item = find_item(record, item_id)
            invitation = find_by_token(item, token_hash)
            if invitation.by in inactive:
                raise Conflict(f"{invitation.by}, who invited you, is deactivated. Nothing was changed.")
            if find_freeze(record, item, freezes) is not None:
                raise Frozen("This is frozen for now. Open the link again later.")
            return act(record, now_ms, reviewing.frozen_ms(record, item_id, freezes, now_ms))

        return verb
