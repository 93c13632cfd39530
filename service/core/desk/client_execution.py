"""Let the client of a run execute its own calls, for suspensions in `poll` mode."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sayso.core.policy.budgets import complete
from sayso.core.policy.counters.charging import NO_READINGS, Ledger
from sayso.core.policy.counters.readings import Readings
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Report
from sayso.core.records.freezes import Freeze, Revocations
from sayso.core.records.items import Item
from sayso.core.records.judgements import Charge
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.records.terms import REPORT_WITHIN_S
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.client_execution import (
    charge_item,
    client_redeem,
    conclude,
    conclude_lost,
    key_of,
    mark_in_doubt,
)
from sayso.core.transitions.deciding import find_item, report
from sayso.core.transitions.freezing import check_start, shift_deadlines
from sayso.core.transitions.permits import is_lost
from sayso.errors import Conflict, Withdrawn
from sayso.runner.revalidation import find_ended_grant, find_loss, judge_approved, list_wanted
from service.core.desk.changes import Changes, draft_following, until_within
from service.core.policy.evaluations import Evaluations
from service.core.store.suspensions.saving import Saved


@dataclass(frozen=True)
class ClientExecution:
    """Operations of the client of a run."""

    changes: Changes
    policy: Callable[[], Policy]
    evaluations: Evaluations

    async def client_redeem(
        self,
        suspension_id: str,
        item_id: str,
        key: str,
        revocations: Revocations,
        report_within_s: int = REPORT_WITHIN_S,
    ) -> Saved:
        """Redeem the permit of one call; the call may start only after this. The same key again changes nothing.

        Raises what the transition raises, `Frozen`, and `Withdrawn` when a rule denies the call now, a reviewer was
        deactivated or the run's key was revoked: then a repeated key raises it, too.
        """

        async def attempt() -> Saved:
            policy = self.policy()
            known, readings = None, NO_READINGS
            if policy.remembering:
                known = await self.changes.suspensions.read(suspension_id)
                about = (known.record, (find_item(known.record, item_id),), policy, known.now_ms)
                wanted = await self.evaluations.judge(partial(list_wanted, *about), caller=suspension_id)
                readings = await self.changes.suspensions.recall(wanted)
            # The conditions of one suspension are judged in its own turn: its owner is not known yet.
            settle = partial(self.evaluations.settle, caller=suspension_id)

            def redeem(record: SuspensionRecord, now_ms: int, freezes: tuple[Freeze, ...]) -> Change:
                item = find_item(record, item_id)
                if (withdrawn := revocations.find_withdrawal(record.run)) is not None:
                    raise _describe_withdrawal(withdrawn, item)
                is_decided = record.due_at_ms is not None and not any(other.open for other in record.items)
                shifted = shift_deadlines(record, freezes, now_ms) if freezes and is_decided else Change(record)
                redeemed = client_redeem(shifted.record, item_id, key, now_ms, report_within_s)
                if redeemed.record is shifted.record:
                    return Change(record)
                check_start(freezes, record, (item.tool.name,), now_ms)
                charges = _revalidate(record, item, policy, revocations, readings, now_ms)
                redeemed = charge_item(redeemed, item_id, charges, now_ms)
                return Change(redeemed.record, shifted.events + redeemed.events)

            return await settle(lambda: self.changes.start(suspension_id, redeem, known))

        return await until_within(attempt)

    async def conclude(self, suspension_id: str, item_id: str, key: str | None, reported: Report) -> Saved:
        """Record the result of a redeemed call, or resolve its doubt; raises what the transition `conclude` raises."""
        try:
            return await self.changes.change(
                suspension_id, lambda record, now_ms: conclude(record, item_id, key, reported, now_ms)
            )
        except Conflict:
            late = await self._conclude_lost(suspension_id, item_id, key, reported)
            late = late or await self._conclude_late(suspension_id, item_id, key, reported)
            if late is None:
                raise
            return late

    async def _conclude_lost(self, suspension_id: str, item_id: str, key: str | None, reported: Report) -> Saved | None:
        record, freezes = (await self.changes.suspensions.read(suspension_id)).record, await self.changes.freezes()
        if not is_lost(find_item(record, item_id), freezes):
            return None
        with suppress(Conflict):
            return await self.changes.change(
                suspension_id, lambda record, now_ms: conclude_lost(record, item_id, key, reported, now_ms)
            )
        return None

    async def mark_in_doubt(self, suspension_id: str, item_id: str) -> Saved:
        """Mark a redeemed call in doubt, once; `following` of the result is the suspension that asks about it."""

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            if record.following_id is not None:
                return Change(record)
            return mark_in_doubt(record, item_id, draft_following(record, None, record.step), now_ms)

        saved = await self.changes.change(suspension_id, transition)
        following = await self.changes.suspensions.read(saved.record.following_id or suspension_id)
        return Saved(saved.record, saved.now_ms, repeated=saved.repeated, following=following.record)

    async def _conclude_late(self, suspension_id: str, item_id: str, key: str | None, reported: Report) -> Saved | None:
        record = (await self.changes.suspensions.read(suspension_id)).record
        item = find_item(record, item_id)
        if record.following_id is None or item.permit is None:
            return None
        result = ToolResult(
            call_id=item.call_id,
            tool_name=item.tool.name,
            success=reported.success,
            output=reported.output,
            error=reported.error if not reported.success else None,
        )
        call_key, holder = key_of(record, item), key or item.permit.holder
        try:
            saved = await self.changes.change(
                record.following_id, lambda record, now_ms: report(record, call_key, holder, result, now_ms)
            )
        except Conflict:
            return None
        return None if saved.repeated else saved


@complete
def _revalidate(
    record: SuspensionRecord, item: Item, policy: Policy, revocations: Revocations, readings: Readings, now_ms: int
) -> tuple[Charge, ...]:
    """Return what the call adds to counters; raises `Withdrawn`."""
    judged = judge_approved(record, item, Ledger(policy, readings), now_ms)
    if judged.action is Action.DENY:
        why = f": {judged.reason.removesuffix('.')}" if judged.reason else ""
        raise Withdrawn(f"The rules now deny {item.tool.name}{why}. The call must not start.")
    if (loss := find_loss(item, policy, revocations)) is not None:
        raise _describe_withdrawal(loss, item)
    if item.permit is None and (ended := find_ended_grant(item, judged)) is not None:
        raise _describe_withdrawal(ended, item)
    return judged.due_charges if item.doubt is None and item.permit is None and not item.charges else ()


def _describe_withdrawal(why: str, item: Item) -> Withdrawn:
    """Return why an approval no longer counts, and what to do: nothing that could run the call twice."""
    if item.permit is not None:
        return Withdrawn(f"{why} The call may have run and must not start again.")
    return Withdrawn(f"{why} The call must not start. Suspend it again with a new key.")
