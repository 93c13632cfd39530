"""The single entry point for changes of suspensions: `Desk`, one method per operation.

Side effects of an operation (trail events, due time, ready list, outbox) are saved in its commit.
"""

from collections.abc import Callable

from sayso.policy.engine import Policy
from service.desk.changes import Changes, KnownFreezes, no_freezes, no_limit
from service.desk.client_execution import ClientExecution
from service.desk.reviewing import Reviewing
from service.desk.scheduling import Scheduling
from service.desk.suspending import Suspending
from service.desk.worker_execution import WorkerExecution
from service.policy.evaluations import Evaluations
from service.store.runs.runs import Runs
from service.store.suspensions.intake import Intake
from service.store.suspensions.saving import Suspensions


class Desk:
    """All operations on the suspensions of one tenant, each bound from the part that implements it."""

    def __init__(
        self,
        suspensions: Suspensions,
        runs: Runs,
        policy: Callable[[], Policy],
        freezes: KnownFreezes = no_freezes,
        sure_until_ms: Callable[[], int] = no_limit,
        intake: Intake | None = None,
    ) -> None:
        self.suspensions = suspensions
        self.runs = runs
        self.evaluations = Evaluations()
        changes = Changes(suspensions, freezes, sure_until_ms)
        suspending = Suspending(suspensions, runs, policy, self.evaluations, intake)
        self.start = suspending.start
        self.suspend = suspending.suspend
        scheduling = Scheduling(changes)
        self.tick = scheduling.tick
        self.tick_batch = scheduling.tick_batch
        self.precompute = scheduling.precompute
        self.fulfil = scheduling.fulfil
        self.wake = scheduling.wake
        reviewing = Reviewing(changes, runs, policy, self.evaluations, scheduling)
        self.decide = reviewing.decide
        self.extend = reviewing.extend
        self.see = reviewing.see
        self.cancel = reviewing.cancel
        self.withdraw = reviewing.withdraw
        self.revive = reviewing.revive
        worker = WorkerExecution(changes, runs)
        self.lease = worker.lease
        self.renew = worker.renew
        self.redeem = worker.redeem
        self.checkpoint = worker.checkpoint
        self.note_results = worker.note_results
        self.return_permits = worker.return_permits
        self.suspend_again = worker.suspend_again
        self.settle = worker.settle
        self.postpone = worker.postpone
        self.release = worker.release
        self.report = worker.report
        client = ClientExecution(changes, policy)
        self.client_redeem = client.client_redeem
        self.conclude = client.conclude
        self.mark_in_doubt = client.mark_in_doubt
