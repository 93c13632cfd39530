"""The one door: every change to a suspension goes through `Desk`, one method a verb, whoever causes it.

What a change brings with it (the run's trail, its place on the schedule, waking a worker, external_event who waits) hangs on the
verb and is saved with it in one commit, so that no caller can forget it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from pydantic import JsonValue

from sayso.canonical_json import digest_json
from sayso.clock import new_id
from sayso.errors import Conflict, DeadlinePassed, IdempotencyConflict, InvalidInput
from sayso.policy.engine import Policy
from sayso.policy.external import ExternalCall, evaluate_calls, judge_final
from sayso.records.decisions import Actor, Decision, DecisionAction, DecisionRequest
from sayso.records.events import Event
from sayso.records.freezes import Freeze
from sayso.records.items import Item, ItemDraft, ItemKind, final_args
from sayso.records.run_state import SealedState
from sayso.records.suspensions import Change, Origin, ResumeSpec, RunRef, Status, SuspensionRecord
from sayso.schemas.bounds import without_argument
from sayso.transitions.client_execution import name_run
from sayso.transitions.deciding import ask_again, cancel, decide, extend, find_item, suspend
from sayso.transitions.decision_checks import check_open
from sayso.transitions.execution import revive
from sayso.transitions.freezing import check_in_time, doubt_time, lost_ms
from sayso.transitions.in_doubt import check_choice
from sayso.transitions.sightings import see
from service.desk.scheduling import Scheduling
from service.desk.worker_execution import KnownFreezes, be_sure_for_ever, draft_suspension, know_no_freezes
from service.policy.evaluations import Evaluations
from service.policy.schemas import Fit
from service.store.runs.runs import Runs
from service.store.suspensions.commits import Idempotency
from service.store.suspensions.intake import Intake
from service.store.suspensions.saving import Saved, Suspensions

__all__ = ["Desk", "Foreign", "draft_suspension"]


_OURS = Origin()


@dataclass(frozen=True)
class Foreign:
    """What comes with a run that is not ours: what wrote its state, and the state, to be given back unchanged.

    Of one that speaks another protocol `fit` makes of what the rules ask something it can express, `kept_ms` is how
    long its keys are remembered after the deadline, `words` what it says about the call.
    """

    origin: Origin
    state: SealedState
    fit: Callable[[ItemDraft], ItemDraft] | None = None
    kept_ms: int = 0
    words: tuple[Event, ...] = ()

    def keep(self, seen: Idempotency | None, drafts: Sequence[ItemDraft]) -> Idempotency | None:
        """Return the caller's key, remembered for `kept_ms` after the deadline."""
        if not self.kept_ms or seen is None:
            return seen
        return replace(seen, kept_ms=max(ask.terms.timeout_s for ask in drafts) * 1000 + self.kept_ms)


class Desk(Scheduling):
    """Suspend, decide, expire, cancel; for workers lease, redeem, checkpoint, suspend again, settle.

    For whoever drives their own run: consume, conclude, question.
    """

    def __init__(
        self,
        suspensions: Suspensions,
        runs: Runs,
        policy: Callable[[], Policy],
        freezes: KnownFreezes = know_no_freezes,
        sure_until_ms: Callable[[], int] = be_sure_for_ever,
        intake: Intake | None = None,
    ) -> None:
        super().__init__(suspensions, runs, policy, freezes, sure_until_ms)
        self._intake = intake
        self._room = intake.room if intake is not None else None
        self.evaluations = Evaluations()

    async def start(
        self,
        run: RunRef,
        state: SealedState,
        on_deny: str = "continue",
        key: str | None = None,
        request: JsonValue = None,
        origin: Origin = _OURS,
    ) -> Saved:
        """Begin a run: it is saved and made ready for a worker in the same commit.

        `request` is all that the caller asked for and nothing that was made up here: with the same key it tells the
        same request, which gets the first one's run, from another, which is refused.
        """
        await self._admit(run)
        draft = draft_suspension(self.suspensions.tenant, run, on_deny=on_deny, state=state)
        draft = draft.model_copy(update={"resume": ResumeSpec(resumer=origin.resumer), "origin": origin})
        seen = _seen(run.owner, key, ["start", request], draft.id)

        def begin(now_ms: int) -> Change:
            begun = suspend(draft, (), now_ms)
            return Change(begun.record, begun.events, state=state, ready=begun.ready)

        return await self.suspensions.create(draft.id, begin, seen, self._room)

    async def ask(
        self,
        run: RunRef,
        calls: Sequence[ExternalCall],
        resume: ResumeSpec,
        on_deny: str = "continue",
        key: str | None = None,
        request: JsonValue = None,
        foreign: Foreign | None = None,
    ) -> Saved:
        """Judge calls of a run that is driven elsewhere, and suspend it until those that must wait are decided.

        What the policy allows or denies is ruled at once; with nothing left to ask the suspension is decided at once.
        What the desk counts in the run's thread is the number of its turn, unless the calls say a higher one. Raises
        `InvalidInput` for arguments that do not fit their tool's schema: such a call could not run.
        """
        await self._admit(run)
        state = foreign.state if foreign else None
        turn = max(await self._count_turns(run, key), *(one.step for one in calls))
        draft = draft_suspension(self.suspensions.tenant, run, state=state, on_deny=on_deny, step=turn)
        draft = draft.model_copy(update={"resume": resume})
        if foreign is None and resume.mode == "poll" and key is not None:
            return await self._ask_once(draft, calls, key, digest_json(["ask", request]))
        seen = _seen(run.owner, key, ["ask", request], draft.id)
        drafts, judged = evaluate_calls(self._policy(), run, calls, turn)
        await self._check_calls(draft, calls, drafts, foreign)
        said: tuple[Event, ...] = ()
        if foreign is not None:
            draft = draft.model_copy(update={"origin": foreign.origin})
            drafts = tuple(map(foreign.fit, drafts)) if foreign.fit else drafts
            said, seen = foreign.words, foreign.keep(seen, drafts)

        def begin(now_ms: int) -> Change:
            asked = suspend(draft, drafts, now_ms)
            return Change(asked.record, said + judged + asked.events, state=state, ready=asked.ready)

        return await self.suspensions.create(draft.id, begin, seen, self._room)

    async def _admit(self, run: RunRef) -> None:
        """Raise `TooManyRequests` when the run's owner asks too often."""
        if self._intake is not None:
            await self._intake.admit(run.owner)

    async def _ask_once(self, draft: SuspensionRecord, calls: Sequence[ExternalCall], key: str, told: str) -> Saved:
        """Ask for calls that their owner runs: the key names the suspension, so that it is asked once while it is kept.

        An agent that comes back after weeks finds what it began; a key's usual day would have it ask, and run, anew.
        """
        run = name_run(draft.run, key, told)
        named = draft.model_copy(update={"id": run.id.replace("run_", "sus_", 1), "run": run})
        drafts, judged = evaluate_calls(self._policy(), run, calls, draft.step)
        await self._check_calls(named, calls, drafts)

        def begin(now_ms: int) -> Change:
            asked = suspend(named, drafts, now_ms)
            return Change(asked.record, judged + asked.events, ready=asked.ready)

        saved = await self.suspensions.create(named.id, begin, room=self._room)
        if saved.record.run.request_id != told:
            raise IdempotencyConflict(idempotency_key=key)
        return saved

    async def _count_turns(self, run: RunRef, key: str | None) -> int:
        """Return how many times its owner has asked in the run's thread; a run without one begins with its first."""
        if run.thread_id == run.id:
            return 1
        return await self.runs.number_turn(run.owner, run.thread_id, key or run.id)

    async def _check_calls(
        self,
        draft: SuspensionRecord,
        calls: Sequence[ExternalCall],
        drafts: Sequence[ItemDraft],
        foreign: Foreign | None = None,
    ) -> None:
        """Check the arguments against their schemas, but for one that a person is to give, and keep the definitions."""
        fits = [
            Fit(
                one.definition.parameters
                if ask.target_arg is None
                else without_argument(one.definition.parameters, ask.target_arg),
                one.call.args,
                f"calls[{one.call.index}].args",
            )
            for one, ask in zip(calls, drafts, strict=True)
        ]
        await self.evaluations.check_values(fits, caller=draft.run.owner)
        if foreign is None or foreign.fit is None:
            await self.runs.save_definitions([one.definition for one in calls])

    async def decide(
        self,
        suspension_id: str,
        item_id: str,
        request: DecisionRequest,
        by: Actor,
        key: str | None = None,
        asker: str | None = None,
    ) -> Saved:
        """Put one reviewer's word on one item. `asker` is whose key it is, where that is not the reviewer.

        Edited arguments and given values must fit the tool's own schema, and the rules are asked again about the
        final arguments: what they deny is refused here, and where another rule asks, it is asked anew. Raises what
        `sayso.transitions.deciding.decide` raises, and `PolicyForbids`.
        """
        asked: list[JsonValue] = [suspension_id, item_id, by.id, request.model_dump(mode="json")] if key else []
        seen = _seen(asker or by.id, key, ["decide", *asked], suspension_id)
        decision_id = f"dec_{sha256(f'{by.id} {key}'.encode()).hexdigest()[:32]}" if key else new_id("dec")
        changed = request.action == "value" or request.args is not None
        anew = await self._check_answer(suspension_id, item_id, request, by.id) if changed else None
        freezes = await self._freezes(False)

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
            lost = self._lost_ms(record, item_id, freezes, now_ms)
            if anew is not None:
                return ask_again(record, decision, anew, now_ms, lost)
            return decide(record, decision, now_ms, lost)

        try:
            return await self.suspensions.change(suspension_id, verb, seen)
        except DeadlinePassed:
            await self.look(suspension_id)
            raise

    async def cancel(self, run_id: str, by: Actor, reason: str | None = None, key: str | None = None) -> Saved:
        """Cancel a run, wherever it stands; a run that has ended stays as it is and raises `Conflict`."""
        seen = _seen(by.id, key, ["cancel", run_id, reason], run_id)
        while True:
            run = await self.runs.read(run_id)
            if run.status.ended and run.status != "cancelled":
                raise Conflict(
                    f"The run has already ended: {run.status}. There is nothing to cancel.", status=run.status
                )
            suspension_id = run.suspension_id
            saved = await self.suspensions.change(
                suspension_id, lambda record, now_ms: _cancel_current(record, by, reason, now_ms), seen
            )
            if saved.record.status is Status.CANCELLED:
                return saved

    async def withdraw(self, suspension_id: str, by: Actor) -> Saved:
        """Cancel what whoever asked no longer wants; again it changes nothing.

        What is decided stays so, and what is late is decided by its fallback: `AlreadyDecided`, `DeadlinePassed`.
        """

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            check_open(record, now_ms)
            return cancel(record, by, None, now_ms)

        try:
            return await self.suspensions.change(suspension_id, verb)
        except DeadlinePassed:
            await self.look(suspension_id)
            raise

    async def revive(self, suspension_id: str, by: Actor, key: str | None = None, run_id: str = "") -> Saved:
        """Have a run that was given up tried again; with its key sent again it may have gone on to another pause."""
        seen = _seen(by.id, key, ["revive", run_id], suspension_id)
        return await self.suspensions.change(suspension_id, lambda record, now_ms: revive(record, by, now_ms), seen)

    async def extend(self, suspension_id: str, item_id: str, until_ms: int, by: Actor, key: str | None = None) -> Saved:
        """Give the reviewers of an item more time, as far as its terms allow."""
        seen = _seen(by.id, key, ["extend", suspension_id, item_id, until_ms], suspension_id)
        freezes = await self._freezes(False)

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            return extend(record, item_id, until_ms, by, now_ms, self._lost_ms(record, item_id, freezes, now_ms))

        return await self.suspensions.change(suspension_id, verb, seen)

    async def see(self, suspension_id: str, item_id: str, by: Actor) -> Saved:
        """Record that a reviewer has seen an item, where its fallback depends on it; else change nothing."""

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            return see(record, item_id, by, now_ms) if record.status is Status.PENDING else Change(record)

        return await self.suspensions.change(suspension_id, verb)

    def _lost_ms(self, record: SuspensionRecord, item_id: str, freezes: tuple[Freeze, ...], now_ms: int) -> int:
        """How much of the item's time freezes took so far: its deadline holds, although it still says the old one.

        Raises `ClockInDoubt` where nobody can say whether the deadline has passed.
        """
        known = doubt_time(freezes, self.suspensions.mark_ms(), now_ms)
        if not known:
            return 0
        item = find_item(record, item_id)
        lost = lost_ms(record, item, known, now_ms)
        check_in_time(known, record, item, now_ms - lost)
        return lost

    async def _check_answer(
        self, suspension_id: str, item_id: str, request: DecisionRequest, caller: str
    ) -> ItemDraft | None:
        """Check the final arguments, and return what is to be asked about them where another rule asks than before.

        The digest in the request makes sure that the commit is about the same item.
        """
        found = await self.suspensions.read(suspension_id)
        assert found.record is not None  # noqa: S101  read() raises NotFound otherwise
        item = find_item(found.record, item_id)
        if not item.open or item.digest != request.digest:
            return None
        if request.action == "value":
            await self._check_given(item, request.value, caller)
        args = final_args(item, edited=request.args, value=request.value)
        definition = await self.runs.definition(item.tool.definition)
        if definition is not None:
            await self.evaluations.check_value(definition.parameters, args, "args", caller=caller)
        return judge_final(self._policy(), found.record, item, args, definition)

    async def _check_given(self, item: Item, value: JsonValue, caller: str) -> None:
        if item.kind is not ItemKind.INPUT:
            raise InvalidInput("This item asks for approval, not for a value; send approve or deny.")
        if item.response_schema is not None:
            await self.evaluations.check_value(item.response_schema, value, "value", caller=caller, formats=True)
        if item.doubt is not None:
            check_choice(value)


def _cancel_current(record: SuspensionRecord, by: Actor, reason: str | None, now_ms: int) -> Change:
    """Cancel, unless the run has moved on to its next suspension, or ended, meanwhile; the caller then looks again."""
    if record.following_id is not None or (record.end is not None and record.status is not Status.CANCELLED):
        return Change(record)
    return cancel(record, by, reason, now_ms)


def _seen(actor: str, key: str | None, request: list[JsonValue], ref: str) -> Idempotency | None:
    if key is None:
        return None
    return Idempotency(actor=actor, key=key, fingerprint=digest_json(request)[:32], ref=ref)
