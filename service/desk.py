"""The one door: every change to a suspension goes through `Desk`, one method a verb, whoever causes it.

What a change brings with it (the run's trail, its place on the agenda, waking a worker, telling who waits) hangs on the
verb and is saved with it in one commit, so that no caller can forget it.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

from pydantic import JsonValue

from sayso.canonical import digest_json
from sayso.clock import new_id
from sayso.deadlines import keep_time
from sayso.decisions import Actor, Decision, DecisionAction, DecisionRequest
from sayso.errors import Conflict, DeadlinePassed, InvalidInput, PolicyForbids
from sayso.events import Event
from sayso.gates import GatedCall, gate_calls
from sayso.pauses import cancel, decide, extend, find_item, report, suspend
from sayso.policies import Action, Policy, PolicyEvent
from sayso.requests import Ask, Item, ItemKind, final_args
from sayso.resumptions import (
    Fence,
    checkpoint,
    lease,
    postpone,
    redeem,
    redrive,
    release,
    renew,
    revive,
    settle,
    suspend_again,
)
from sayso.states import SealedState
from sayso.suspensions import Change, Intent, Origin, ResumeSpec, RunEnd, RunRef, Status, SuspensionRecord
from sayso.tool_calls import ToolResult
from service.schemas import check_value
from service.store.commits import Idempotency
from service.store.runs import Runs
from service.store.suspensions import Saved, Suspensions

Plan = Callable[[SuspensionRecord, Fence, int], tuple[Intent, ...]]
"""Which calls a worker that leases a run will start before it does anything else; a plain function of the record."""


def plan_nothing(_record: SuspensionRecord, _fence: Fence, _now_ms: int) -> tuple[Intent, ...]:
    """Plan no calls: what comes first is not known yet."""
    return ()


class Desk:
    """Suspend, decide, expire, cancel; lease, redeem, checkpoint, suspend again, settle."""

    def __init__(self, suspensions: Suspensions, runs: Runs, policy: Callable[[], Policy]) -> None:
        self.suspensions = suspensions
        self.runs = runs
        self._policy = policy

    async def start(
        self,
        tenant: str,
        run: RunRef,
        state: SealedState,
        on_deny: str = "continue",
        key: str | None = None,
        request: JsonValue = None,
    ) -> Saved:
        """Begin a run: it is saved and made ready for a worker in the same commit.

        `request` is all that the caller asked for and nothing that was made up here: with the same key it tells the
        same request, which gets the first one's run, from another, which is refused.
        """
        draft = draft_suspension(tenant, run, on_deny=on_deny, state=state)
        seen = _seen(run.owner, key, ["start", request], draft.id)

        def begin(now_ms: int) -> Change:
            begun = suspend(draft, (), now_ms)
            return Change(begun.record, begun.events, state=state, ready=begun.ready)

        return await self.suspensions.create(tenant, draft.id, begin, seen)

    async def ask(
        self,
        tenant: str,
        run: RunRef,
        calls: Sequence[GatedCall],
        resume: ResumeSpec,
        on_deny: str = "continue",
        key: str | None = None,
        request: JsonValue = None,
    ) -> Saved:
        """Judge calls of a run that is driven elsewhere, and suspend it until those that must wait are decided.

        What the policy allows or denies is ruled at once; with nothing left to ask the suspension is decided at once.
        """
        await self.runs.save_definitions(tenant, [one.definition for one in calls])
        draft = draft_suspension(tenant, run, state=None, on_deny=on_deny).model_copy(update={"resume": resume})
        seen = _seen(run.owner, key, ["ask", request], draft.id)
        asks, judged = gate_calls(self._policy(), run, calls)

        def begin(now_ms: int) -> Change:
            asked = suspend(draft, asks, now_ms)
            return Change(asked.record, judged + asked.events, ready=asked.ready)

        return await self.suspensions.create(tenant, draft.id, begin, seen)

    async def decide(
        self,
        tenant: str,
        suspension_id: str,
        item_id: str,
        request: DecisionRequest,
        by: Actor,
        key: str | None = None,
        asker: str | None = None,
    ) -> Saved:
        """Put one reviewer's word on one item. `asker` is whose key it is, where that is not the reviewer.

        Edited arguments and given values must fit the tool's own schema, and the rules are asked again about the
        final arguments: what they deny is refused here. Raises what `sayso.pauses.decide` raises, and `PolicyForbids`.
        """
        word = request.model_dump(mode="json")
        seen = _seen(asker or by.id, key, ["decide", suspension_id, item_id, by.id, word], suspension_id)
        decision_id = f"dec_{sha256(f'{by.id} {key}'.encode()).hexdigest()[:32]}" if key else new_id("dec")
        if request.action == "value" or request.args is not None:
            await self._check_answer(tenant, suspension_id, item_id, request)

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            decision = Decision(
                id=decision_id,
                suspension_id=suspension_id,
                suspension_version=record.version,
                item_id=item_id,
                action=DecisionAction(request.action),
                args=request.args,
                value=request.value,
                message=request.message,
                args_digest=request.digest,
                by=by,
                at_ms=now_ms,
                idempotency_key=key,
            )
            return decide(record, decision, now_ms)

        try:
            return await self.suspensions.change(tenant, suspension_id, verb, seen)
        except DeadlinePassed:
            await self.look(tenant, suspension_id)
            raise

    async def look(self, tenant: str, suspension_id: str) -> Saved:
        """Do what the suspension's own times call for now: its fallback, or putting it before a worker again."""

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            if record.status is Status.PENDING:
                return keep_time(record, now_ms)
            if record.status in (Status.DECIDED, Status.RESUMING):
                return redrive(record, now_ms)
            return Change(record)

        return await self.suspensions.change(tenant, suspension_id, verb)

    async def cancel(
        self, tenant: str, run_id: str, by: Actor, reason: str | None = None, key: str | None = None
    ) -> Saved:
        """Cancel a run, wherever it stands; a run that has ended stays as it is and raises `Conflict`."""
        seen = _seen(by.id, key, ["cancel", run_id, reason], run_id)
        while True:
            run = await self.runs.read(tenant, run_id)
            if run.status.ended and run.status != "cancelled":
                raise Conflict(
                    f"The run has already ended: {run.status}. There is nothing to cancel.", status=run.status
                )
            suspension_id = run.suspension_id
            saved = await self.suspensions.change(
                tenant, suspension_id, lambda record, now_ms: _cancel_current(record, by, reason, now_ms), seen
            )
            if saved.record.status is Status.CANCELLED:
                return saved

    async def lease(
        self, tenant: str, suspension_id: str, holder: str, lease_ms: int, plan: Plan = plan_nothing
    ) -> Saved:
        """Take a decided run up; raises `LeaseHeld` or `IllegalTransition` when it is not to be had.

        `plan` says which calls the worker will start first; their permits are spent in the same commit where they can.
        """

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            taken = lease(record, holder, lease_ms, now_ms)
            if taken.record is record or taken.record.lease is None:
                return taken
            fence = Fence(holder, taken.record.lease.attempt, lease_ms)
            intents = plan(taken.record, fence, now_ms)
            if not intents:
                return taken
            begun = tuple(intent.model_copy(update={"begun_at_ms": now_ms}) for intent in intents)
            try:
                spent = redeem(taken.record, fence, begun, (), now_ms)
            except Conflict:
                return taken  # the worker meets the same refusal at its own first step, and shows it
            return Change(spent.record, taken.events + spent.events)

        return await self.suspensions.change(tenant, suspension_id, verb)

    async def renew(self, tenant: str, suspension_id: str, fence: Fence) -> Saved:
        """Hold the lease for another while."""
        return await self.suspensions.change(tenant, suspension_id, lambda record, now_ms: renew(record, fence, now_ms))

    async def redeem(
        self,
        tenant: str,
        suspension_id: str,
        fence: Fence,
        intents: tuple[Intent, ...],
        events: tuple[Event, ...],
        state: SealedState | None,
        known: Saved | None = None,
    ) -> Saved:
        """Journal the calls about to start and spend their permits; only after this may a tool run.

        `known` is what the worker saved last: with it, its next step need not look first.
        """

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            begun = tuple(intent.model_copy(update={"begun_at_ms": now_ms}) for intent in intents)
            if state is None:
                return redeem(record, fence, begun, events, now_ms)
            saved = checkpoint(record, fence, state, events, now_ms)
            spent = redeem(saved.record, fence, begun, (), now_ms)
            return Change(spent.record, saved.events + spent.events, state=state)

        return await self.suspensions.change(tenant, suspension_id, verb, known=known)

    async def checkpoint(
        self,
        tenant: str,
        suspension_id: str,
        fence: Fence,
        state: SealedState,
        events: tuple[Event, ...],
        known: Saved | None = None,
    ) -> Saved:
        """Save how far the run has come."""
        return await self.suspensions.change(
            tenant, suspension_id, lambda record, now_ms: checkpoint(record, fence, state, events, now_ms), known=known
        )

    async def suspend_again(
        self,
        leased: SuspensionRecord,
        fence: Fence,
        asks: tuple[Ask, ...],
        state: SealedState,
        events: tuple[Event, ...],
        step: int,
    ) -> Saved:
        """Pause a driven run again: what it asks is saved in the commit that ends this pause."""
        draft = draft_suspension(leased.tenant, leased.run, on_deny=leased.on_deny, state=state, step=step)
        draft = draft.model_copy(update={"origin": leased.origin, "resume": leased.resume})
        return await self.suspensions.change(
            leased.tenant,
            leased.id,
            lambda record, now_ms: suspend_again(record, fence, draft, asks, state, events, now_ms),
        )

    async def settle(
        self,
        tenant: str,
        suspension_id: str,
        fence: Fence,
        end: RunEnd,
        events: tuple[Event, ...],
        known: Saved | None = None,
    ) -> Saved:
        """End the run."""
        return await self.suspensions.change(
            tenant, suspension_id, lambda record, now_ms: settle(record, fence, end, events, now_ms), known=known
        )

    async def postpone(self, tenant: str, suspension_id: str, fence: Fence, error: str) -> Saved:
        """Put a resume that could not go on back, visibly; the last attempt gives the run up."""
        return await self.suspensions.change(
            tenant, suspension_id, lambda record, now_ms: postpone(record, fence, error, now_ms)
        )

    async def release(self, tenant: str, suspension_id: str, fence: Fence, reason: str) -> Saved:
        """Give a driven run back, so that any worker may take it up at once."""
        return await self.suspensions.change(
            tenant, suspension_id, lambda record, now_ms: release(record, fence, reason, now_ms)
        )

    async def revive(self, tenant: str, suspension_id: str, by: Actor) -> Saved:
        """Have a run that was given up tried again."""
        return await self.suspensions.change(tenant, suspension_id, lambda record, now_ms: revive(record, by, now_ms))

    async def report(self, tenant: str, run_id: str, key: str, holder: str, result: ToolResult) -> Saved:
        """Take a result that came after its worker had lost the run: it lifts the doubt about its call, if any."""
        run = await self.runs.read(tenant, run_id)
        return await self.suspensions.change(
            tenant, run.suspension_id, lambda record, now_ms: report(record, key, holder, result, now_ms)
        )

    async def extend(self, tenant: str, suspension_id: str, item_id: str, until_ms: int, by: Actor) -> Saved:
        """Give the reviewers of an item more time, as far as its terms allow."""
        return await self.suspensions.change(
            tenant, suspension_id, lambda record, now_ms: extend(record, item_id, until_ms, by, now_ms)
        )

    async def _check_answer(self, tenant: str, suspension_id: str, item_id: str, request: DecisionRequest) -> None:
        """Check the final arguments; the digest in the request makes sure that the commit is about the same item."""
        found = await self.suspensions.read(tenant, suspension_id)
        assert found.record is not None  # noqa: S101  read() raises NotFound otherwise
        item = find_item(found.record, item_id)
        if not item.open or item.digest != request.digest:
            return
        if request.action == "value":
            _check_given(item, request.value)
        args = final_args(item, edited=request.args, value=request.value)
        definition = await self.runs.definition(tenant, item.tool.definition)
        if definition is not None:
            check_value(definition.parameters, args, "args")
        self._check_policy(found.record, item, args)

    def _check_policy(self, record: SuspensionRecord, item: Item, args: dict[str, JsonValue]) -> None:
        event = PolicyEvent(
            run_id=record.run.id,
            thread_id=record.run.thread_id,
            step=record.step,
            agent=record.run.agent,
            tool_name=item.tool.name,
            tool_args=args,
            context=record.run.context,
        )
        judged = self._policy().judge(event)
        if judged.action is Action.DENY:
            raise PolicyForbids(
                f"The rule {judged.policy_id or 'default'} denies {item.tool.name} with these final arguments"
                f"{f': {judged.reason}' if judged.reason else ''}. Change them, or deny the item.",
                policy_id=judged.policy_id,
            )


def draft_suspension(
    tenant: str, run: RunRef, *, state: SealedState | None, on_deny: str = "continue", step: int = 0
) -> SuspensionRecord:
    """Return a suspension that is not saved yet; the verb sets its status and its times."""
    return SuspensionRecord.model_validate(
        {
            "id": new_id("sus"),
            "tenant": tenant,
            "status": Status.PENDING,
            "created_at_ms": 0,
            "updated_at_ms": 0,
            "run": run,
            "step": step,
            "origin": Origin(),
            "resume": ResumeSpec(),
            "on_deny": on_deny,
            "state": state.ref if state else None,
        }
    )


def _check_given(item: Item, value: JsonValue) -> None:
    if item.kind is not ItemKind.INPUT:
        raise InvalidInput("This item asks for approval, not for a value; send approve or deny.")
    if item.response_schema is not None:
        check_value(item.response_schema, value, "value")


def _cancel_current(record: SuspensionRecord, by: Actor, reason: str | None, now_ms: int) -> Change:
    """Cancel, unless the run has moved on to its next suspension meanwhile; the caller then looks again."""
    if record.following_id is not None:
        return Change(record)
    return cancel(record, by, reason, now_ms)


def _seen(actor: str, key: str | None, request: list[JsonValue], ref: str) -> Idempotency | None:
    if key is None:
        return None
    return Idempotency(actor=actor, key=key, fingerprint=digest_json(request)[:32], ref=ref)
