"""Let whoever asked run their own calls: spend the leave of one, say what came of it, ask about one in doubt.

These verbs are the desk's own (`service/desk/desk.py`), for suspensions in `poll` mode.
"""

from collections.abc import Callable

from sayso.errors import Conflict, Withdrawn
from sayso.policy.engine import Action, Policy
from sayso.records.decisions import Report
from sayso.records.freezes import Freeze
from sayso.records.items import Item
from sayso.records.revocations import Revocations
from sayso.records.suspensions import Change, SuspensionRecord
from sayso.records.terms import REPORT_WITHIN_S
from sayso.records.tool_calls import ToolResult
from sayso.runner.revalidation import find_loss, judge_approved
from sayso.transitions.client_execution import client_redeem, conclude, key_of, mark_in_doubt
from sayso.transitions.deciding import find_item, report
from sayso.transitions.freezing import check_start, shift_deadlines
from service.desk.worker_execution import (
    KnownFreezes,
    Leases,
    Sure,
    be_sure_for_ever,
    draft_suspension,
    know_no_freezes,
)
from service.store.runs.runs import Runs
from service.store.suspensions.saving import Saved, Suspensions


class ClientExecution(Leases):
    """What the owner of a run in `poll` mode does with it."""

    def __init__(
        self,
        suspensions: Suspensions,
        runs: Runs,
        policy: Callable[[], Policy],
        freezes: KnownFreezes = know_no_freezes,
        sure_until_ms: Callable[[], int] = be_sure_for_ever,
    ) -> None:
        super().__init__(suspensions, runs, freezes, sure_until_ms)
        self._policy = policy

    async def client_redeem(
        self,
        suspension_id: str,
        item_id: str,
        key: str,
        revocations: Revocations,
        report_within_s: int = REPORT_WITHIN_S,
    ) -> Saved:
        """Spend the leave to run one call, once; only after this may it start. The same key again changes nothing.

        What it rests on is looked at once more. Raises what `sayso.transitions.client_execution.consume` raises, `Frozen`, and
        `Withdrawn` when a rule denies the call by now, when who approved no longer counts, or when the key that asked
        was revoked: then not even the same key again is told to go on.
        """
        policy = self._policy()

        def spend(record: SuspensionRecord, now_ms: int, freezes: tuple[Freeze, ...]) -> Change:
            item = find_item(record, item_id)
            if (withdrawn := revocations.find_withdrawal(record.run)) is not None:
                raise Withdrawn(f"{withdrawn} The call is not to start; a new key has to ask for it anew.")
            shifted = shift_deadlines(record, freezes, now_ms) if freezes and _is_decided(record) else Change(record)
            spent = client_redeem(shifted.record, item_id, key, now_ms, report_within_s)
            if spent.record is shifted.record:
                return Change(record)
            check_start(freezes, record, (item.tool.name,), now_ms)
            _check_revocations(record, item, policy, revocations)
            return Change(spent.record, shifted.events + spent.events)

        async def step(known: Sure) -> Saved:
            return await self.suspensions.change(
                suspension_id, known.bind(lambda record, now_ms: spend(record, now_ms, known.freezes))
            )

        return await self._unless_frozen(step)

    async def conclude(self, suspension_id: str, item_id: str, key: str | None, told: Report) -> Saved:
        """Record what came of a consumed call. Raises what `sayso.transitions.client_execution.conclude` raises.

        A report that comes after people were asked about the call answers that question.
        """
        try:
            return await self.suspensions.change(
                suspension_id, lambda record, now_ms: conclude(record, item_id, key, told, now_ms)
            )
        except Conflict:
            late = await self._conclude_late(suspension_id, item_id, key, told)
            if late is None:
                raise
            return late

    async def mark_in_doubt(self, suspension_id: str, item_id: str) -> Saved:
        """Ask people about a consumed call that may have run; `following` of what is returned is what asks them.

        Asked already, it is returned as it stands. Raises what `sayso.transitions.client_execution.question` raises.
        """

        def ask(record: SuspensionRecord, now_ms: int) -> Change:
            if record.following_id is not None:
                return Change(record)
            draft = draft_suspension(
                self.suspensions.tenant, record.run, state=None, on_deny=record.on_deny, step=record.step
            )
            draft = draft.model_copy(update={"origin": record.origin, "resume": record.resume})
            return mark_in_doubt(record, item_id, draft, now_ms)

        saved = await self.suspensions.change(suspension_id, ask)
        following_id = saved.record.following_id or suspension_id
        found = await self.suspensions.read(following_id)
        assert found.record is not None  # noqa: S101  read() raises NotFound otherwise
        return Saved(saved.record, saved.now_ms, repeated=saved.repeated, following=found.record)

    async def _conclude_late(self, suspension_id: str, item_id: str, key: str | None, told: Report) -> Saved | None:
        """Lift the doubt about a call by the report of whoever began it; None where nobody is in doubt about it."""
        found = (await self.suspensions.read(suspension_id)).record
        item = find_item(found, item_id) if found is not None else None
        if found is None or found.following_id is None or item is None or item.permit is None:
            return None
        result = ToolResult(
            call_id=item.call_id,
            tool_name=item.tool.name,
            success=told.success,
            output=told.output,
            error=told.error if not told.success else None,
        )
        unfrozen, holder = key_of(found, item), key or item.permit.holder
        try:
            saved = await self.suspensions.change(
                found.following_id, lambda record, now_ms: report(record, unfrozen, holder, result, now_ms)
            )
        except Conflict:
            return None
        return None if saved.repeated else saved


def _is_decided(record: SuspensionRecord) -> bool:
    return not any(item.open for item in record.items) and record.due_at_ms is not None


def _check_revocations(record: SuspensionRecord, item: Item, policy: Policy, revocations: Revocations) -> None:
    judged = judge_approved(record, item, policy)
    if judged.action is Action.DENY:
        why = f": {judged.reason.removesuffix('.')}" if judged.reason else ""
        raise Withdrawn(f"The rules deny {item.tool.name} by now{why}. The call is not to start.")
    if (loss := find_loss(record, item, policy, revocations)) is not None:
        raise Withdrawn(f"{loss} The call is not to start; ask again.")
