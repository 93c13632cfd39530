"""The single entry point for changes of suspensions: `Desk`, one method per operation, each saved in one commit."""

from collections.abc import Callable

from sayso.core.policy.engine import Policy
from service.core.desk.changes import Changes, KnownFreezes, no_freezes
from service.core.desk.client_execution import ClientExecution
from service.core.desk.confirming import Confirming
from service.core.desk.forwarding import Forwarding
from service.core.desk.inviting import Inviting
from service.core.desk.noting import Noting
from service.core.desk.previewing import Previewing
from service.core.desk.reviewing import Check, Reviewing, allow
from service.core.desk.scheduling import Scheduling
from service.core.desk.second_look import SecondLooking
from service.core.desk.suspending import Suspending
from service.core.desk.worker_execution import Handing, WorkerExecution
from service.core.metrics import timed
from service.core.policy.evaluations import Evaluations
from service.core.store.attempts import Attempts
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.commits import Intake
from service.core.store.suspensions.saving import Suspensions


class Desk:
    """All operations on the suspensions of one tenant, each bound from the part that implements it."""

    def __init__(
        self,
        suspensions: Suspensions,
        runs: Runs,
        policy: Callable[[], Policy],
        freezes: KnownFreezes = no_freezes,
        sure_until_ms: Callable[[], int] = lambda: 0,
        intake: Intake | None = None,
        attempts: Attempts | None = None,
        check: Check = allow,
    ) -> None:
        self.suspensions, self.runs = suspensions, runs
        self.evaluations = Evaluations()
        environment = intake.limits.environment if intake is not None else ""
        changes = Changes(suspensions, freezes, sure_until_ms)
        handing = Handing(changes, policy)
        suspending = Suspending(suspensions, runs, policy, self.evaluations, intake, environment, handing)
        self.start, self.suspend = timed("start", suspending.start), timed("suspend", suspending.suspend)
        self.would = suspending.would
        self.plant, self.propose = suspending.plant, timed("propose", suspending.propose)
        self.offer_undo = suspending.offer_undo
        scheduling = Scheduling(changes)
        self.tick, self.tick_batch, self.wake = scheduling.tick, scheduling.tick_batch, scheduling.wake
        self.precompute, self.fulfil = scheduling.precompute, scheduling.fulfil
        self.void_starts = scheduling.void_starts
        self.may_start, self.take_back = handing.may_start, handing.take_back
        reviewing = Reviewing(changes, runs, policy, self.evaluations, scheduling, attempts, handing, check)
        self.decide, self.extend, self.see = timed("decide", reviewing.decide), reviewing.extend, reviewing.see
        self.judge_edit, self.void_decisions = reviewing.judge_edit, reviewing.void_decisions
        self.retract, self.confirm = reviewing.retract, Confirming(reviewing).confirm
        self.cancel, self.withdraw, self.revive = reviewing.cancel, reviewing.withdraw, reviewing.revive
        self.record_deliveries, self.move_cards = scheduling.record_deliveries, scheduling.move_cards
        self.claim, self.release_claim = reviewing.claim, reviewing.release_claim
        self.ask_requester, self.answer_inquiry = reviewing.ask_requester, reviewing.answer_inquiry
        noting = Noting(changes, runs)
        self.write_note, self.note_undone = noting.write_note, noting.note_undone
        inviting = Inviting(reviewing)
        self.invite, self.revoke_invitation = inviting.invite, inviting.revoke_invitation
        self.send_code, self.enter_code = inviting.send_code, inviting.enter_code
        self.decide_outside = inviting.decide_outside
        previewing = Previewing(reviewing)
        self.request_preview, self.store_preview = previewing.request_preview, previewing.store_preview
        self.forward = Forwarding(reviewing).forward
        second = SecondLooking(changes, runs)
        self.find_seen_call, self.take_second_look = second.find_seen_call, second.take_second_look
        worker = WorkerExecution(changes, runs)
        self.lease, self.renew, self.redeem = worker.lease, worker.renew, worker.redeem
        self.checkpoint, self.note_results = worker.checkpoint, worker.note_results
        self.return_permits, self.suspend_again = worker.return_permits, worker.suspend_again
        self.settle, self.postpone, self.release = worker.settle, worker.postpone, worker.release
        self.report = worker.report
        client = ClientExecution(changes, policy, self.evaluations)
        self.client_redeem, self.conclude = client.client_redeem, client.conclude
        self.mark_in_doubt = client.mark_in_doubt
