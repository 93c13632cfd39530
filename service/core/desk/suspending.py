"""Start runs, and suspend them for the calls that people must decide."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import new_number
from sayso.core.policy.counters.readings import Readings, Wanted, is_counter
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.external import (
    ExternalCall,
    counts_by_progress,
    describe_begun,
    describe_calls,
    evaluate_calls,
    list_wanted,
)
from sayso.core.records.decisions import Outcome
from sayso.core.records.envelopes import Revision
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import ItemDraft, assign_numbers
from sayso.core.records.run_state import SealedState
from sayso.core.records.suspensions import Change, Origin, Progress, ResumeSpec, RunRef, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.schemas.bounds import without_argument
from sayso.core.transitions.client_execution import name_run
from sayso.core.transitions.deciding import suspend
from sayso.errors import IdempotencyConflict
from service.core.caller_ids import current_ids
from service.core.desk.changes import build_idempotency, draft_suspension, until_within
from service.core.desk.superseding import KeyedRequest, settle_repeated
from service.core.desk.worker_execution import Handing
from service.core.policy.evaluations import Evaluations, Fit
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.commits import MOST_COUNTERS, Idempotency, Intake
from service.core.store.suspensions.saving import Saved, Suspensions, Verb, ask_nobody

_OURS = Origin()


@dataclass(frozen=True)
class Foreign:
    """The parts of a run that another framework or protocol executes.

    `state` is returned unchanged. For another protocol, `fit` reduces drafts to what it can express, `kept_ms` is how
    long its keys are kept after the deadline, and `events` are added to the trail.
    """

    origin: Origin
    state: SealedState
    fit: Callable[[ItemDraft], ItemDraft] | None = None
    kept_ms: int = 0
    events: tuple[Event, ...] = ()

    def keep(self, seen: Idempotency | None, drafts: Sequence[ItemDraft]) -> Idempotency | None:
        """Return the caller's key, kept for `kept_ms` after the deadline."""
        if not self.kept_ms or seen is None:
            return seen
        return replace(seen, kept_ms=max(draft.terms.timeout_s for draft in drafts) * 1000 + self.kept_ms)


class _Facts(NamedTuple):
    """The rules, the calls of a request as the rules see them, and what the counters held."""

    policy: Policy
    described: Sequence[PolicyEvent]
    readings: Readings


@dataclass(frozen=True)
class Suspending:
    """Operations that create suspensions."""

    suspensions: Suspensions
    runs: Runs
    policy: Callable[[], Policy]
    evaluations: Evaluations
    intake: Intake | None
    environment: str
    handing: Handing

    async def start(
        self,
        run: RunRef,
        state: SealedState,
        on_deny: str = "continue",
        key: str | None = None,
        request: JsonValue = None,
        origin: Origin = _OURS,
    ) -> Saved:
        """Start a run: one commit saves it and makes it ready for a worker.

        `request` holds all that the caller sent and nothing generated. The same key with the same request returns the
        first run; with another request it raises `IdempotencyConflict`.
        """
        await self._admit(run, for_workers=True)
        run = self._place(run)
        draft = draft_suspension(self.suspensions.tenant, run, on_deny=on_deny, state=state)
        draft = draft.model_copy(update={"resume": ResumeSpec(resumer=origin.resumer), "origin": origin})
        seen = build_idempotency(run.owner, key, ["start", request], draft.id)
        await self.handing.prepare()
        freezes = await self.handing.changes.freezes()
        return await self._create(draft, (), (), seen, state, lambda verb: self.handing.hand_on(verb, freezes))

    async def suspend(
        self,
        run: RunRef,
        calls: Sequence[ExternalCall],
        resume: ResumeSpec,
        on_deny: str = "continue",
        key: str | None = None,
        request: JsonValue = None,
        foreign: Foreign | None = None,
        again: bool = False,
    ) -> Saved:
        """Evaluate the calls of a run, and suspend it until people have decided those that need it.

        Allowed and denied calls get their outcome at once. The turn is the higher of the calls' own step and the number
        of requests in the run's thread. A client's key leads to the same calls as before: they are asked again if they
        have changed otherwise and not started, or with `again` if time has ended them. Raises `InvalidInput` for
        arguments that do not fit their tool's schema, and `IdempotencyConflict`.
        """
        run = self._place(run)
        once = key if foreign is None and resume.mode == "poll" else None
        asking = run if once is None else name_run(run, once, request_id="")  # the rules do not see the request's id
        known = await self._admit_reading(asking, calls, for_workers=resume.mode != "poll")
        revised = await self._find_revised(run, calls)
        state = foreign.state if foreign else None
        in_thread = run.thread_id != run.id  # nobody knows what ran before a call without one
        counted = await self.runs.number_turn(run.owner, run.thread_id, key or run.id) if in_thread else None
        turn = max(counted.number if counted is not None else 1, *(call.step for call in calls))
        draft = draft_suspension(self.suspensions.tenant, run, state=state, on_deny=on_deny, step=turn)
        progress = counted.progress if counted is not None and foreign is None else None
        draft = draft.model_copy(update={"resume": resume, "progress": progress})
        if known is not None and counted is not None:
            known = known._replace(described=describe_calls(asking, calls, turn, progress, known.described[0].at_ms))
        request_id, seen = digest_json(["ask", request]), None
        if once is not None:  # a key kept for a day would let a client that returns after weeks run the calls twice
            draft = _name(draft, once, request_id)
        else:
            seen = build_idempotency(run.owner, key, ["ask", request], draft.id)

        async def attempt() -> Saved:
            nonlocal known
            policy = known.policy if known is not None else self.policy()
            if known is not None:  # only once: what counters held is no longer sure after an attempt
                described, readings = known.described, known.readings
            else:
                described, wanted = await self._describe(policy, asking, calls, turn, progress)
                readings = await self.suspensions.recall(wanted)
            known = None
            judging = partial(evaluate_calls, policy, asking, calls, turn, readings, progress, described)
            drafts, judged = await self.evaluations.judge(judging, caller=run.owner)
            if revised:
                drafts = tuple(draft.model_copy(update={"revises": revised.get(draft.index)}) for draft in drafts)
            await self._check_calls(draft, calls, drafts, foreign)
            if foreign is None:
                saved = await self._create(draft, drafts, judged, seen)
                if once is None or not saved.repeated:
                    return saved
                repeated = KeyedRequest(once, draft, calls, drafts, judged, again)
                room = self.intake.room if self.intake is not None else None
                return await settle_repeated(self.suspensions, self.runs, saved, repeated, room)
            fitted = tuple(map(foreign.fit, drafts)) if foreign.fit else drafts
            begun = draft.model_copy(update={"origin": foreign.origin})
            return await self._create(begun, fitted, foreign.events + judged, foreign.keep(seen, fitted), state)

        return await until_within(attempt)

    async def would(self, run: RunRef, call: ExternalCall, resume: ResumeSpec) -> Outcome | None:
        """Return the outcome that a call would get if it were asked now; None if people would be asked.

        It counts as a request against the pace alone, nothing is saved or sent: assessors are not asked, and count as
        high. Raises what `suspend` raises.
        """
        run, policy = self._place(run), self.policy()
        await self._admit(run)
        turn, progress = 1, None
        if run.thread_id != run.id:
            turn, progress = await self.runs.find_next_turn(run.owner, run.thread_id)
        turn = max(turn, call.step)
        described, wanted = await self._describe(policy, run, (call,), turn, progress)
        readings = await self.suspensions.recall(wanted, ask_nobody)
        judging = partial(evaluate_calls, policy, run, (call,), turn, readings, progress, described)
        drafts, _ = await self.evaluations.judge(judging, caller=run.owner)
        draft = draft_suspension(self.suspensions.tenant, run, state=None, step=turn)
        await self._check_args(run.owner, (call,), drafts)
        complete = assign_numbers(await self.suspensions.sampling.complete(drafts), new_number)
        draft = draft.model_copy(update={"resume": resume, "progress": progress})
        begun = suspend(draft, complete, await self.suspensions.read_time_ms())
        return begun.record.items[0].outcome

    async def propose(self, run: RunRef, item: ItemDraft, key: str | None = None, request: JsonValue = None) -> Saved:
        """Ask people about the plan of `item`, in a run of its own that nobody executes. The same key asks once."""
        await self._admit(run)
        draft = draft_suspension(self.suspensions.tenant, self._place(run), state=None, step=1)
        request_id = digest_json(["propose", request])
        draft = _name(draft, key, request_id) if key is not None else draft
        data: JsonObject = {"tool_call_count": 1, "step": 1, "tool_names": [item.tool.name]}
        data |= {"agent": run.agent, "owner": run.owner, **run.describe_who()}
        begun = Event(EventType.TOOL_BATCH_STARTED, data)
        saved = await self._create(draft.model_copy(update={"resume": ResumeSpec(mode="poll")}), (item,), (begun,))
        return saved if key is None else _check_request(saved, key, request_id)

    async def plant(self, run: RunRef, item: ItemDraft, judged: tuple[Event, ...] = ()) -> Saved:
        """Ask about the false call of a drill, in a run that nobody executes; `judged` are its first events."""
        draft = draft_suspension(self.suspensions.tenant, self._place(run), state=None, step=1)
        return await self._create(draft.model_copy(update={"resume": ResumeSpec(mode="poll")}), (item,), judged)

    async def offer_undo(
        self, run: RunRef, item: ItemDraft, definition: ToolDefinition, state: SealedState, typed: tuple[str, ...] = ()
    ) -> Saved:
        """Let people undo a call that ran, in a run of its own; the same run offers it once, over any limit of items.

        `definition` is that of its tool, `state` what the undo gets, and `typed` are secrets to mask.
        """
        await self.runs.save_definitions([definition])
        draft = draft_suspension(self.suspensions.tenant, self._place(run), state=state, step=1)
        resume = ResumeSpec(resumer="undo")
        draft = draft.model_copy(update={"id": run.id.replace("run_", "sus_", 1), "resume": resume, "typed": typed})
        begun = describe_begun(run, [item.tool.name], 1)
        return await self._create(draft, (item,), (begun,), state=state, bounded=False)

    async def _admit_reading(self, run: RunRef, calls: Sequence[ExternalCall], *, for_workers: bool) -> _Facts | None:
        """Admit a request, and read what its rules count in the same round trip; None where it must be read later."""
        policy, intake = self.policy(), self.intake
        alone = run.thread_id == run.id or not counts_by_progress(policy)
        if intake is not None and policy.remembering and alone and intake.is_calm():
            described, wanted = await self._describe(policy, run, calls, max(call.step for call in calls), None)
            if len(wanted) <= MOST_COUNTERS and all(map(is_counter, wanted)):
                readings = await intake.admit(run.owner, for_workers=for_workers, counters=wanted)
                return _Facts(policy, described, readings)
        await self._admit(run, for_workers=for_workers)
        return None

    async def _describe(
        self, policy: Policy, run: RunRef, calls: Sequence[ExternalCall], step: int, progress: Progress | None
    ) -> tuple[Sequence[PolicyEvent], Sequence[Wanted]]:
        at_ms = await self.suspensions.read_time_ms() if policy.reads_time else None
        described = describe_calls(run, calls, step, progress, at_ms)
        wanted = await self.evaluations.judge(partial(list_wanted, policy, described), caller=run.owner)
        return described, wanted

    async def _create(
        self,
        draft: SuspensionRecord,
        drafts: Sequence[ItemDraft],
        events: tuple[Event, ...],
        seen: Idempotency | None = None,
        state: SealedState | None = None,
        hand_on: Callable[[Verb], Verb] = lambda verb: verb,
        *,
        bounded: bool = True,
    ) -> Saved:
        drawn = await self.suspensions.sampling.draw(drafts, draft.run)
        if draft.run.thread_id != draft.run.id:  # nothing came before a call without a thread
            drawn = await self.suspensions.revisions.mark(drawn, draft.run)
        numbered = assign_numbers(drawn, new_number)

        def begin(draft: SuspensionRecord, now_ms: int) -> Change:
            begun = suspend(draft, numbered, now_ms)
            mandate = self.suspensions.hooks.consequences.begin(begun.record, now_ms)
            return Change(begun.record, events + begun.events, state=state, ready=begun.ready, mandate=mandate)

        verb, room = hand_on(begin), self.intake.room if self.intake is not None and bounded else None
        return await self.suspensions.create(draft.id, lambda now_ms: verb(draft, now_ms), seen, room)

    async def _find_revised(self, run: RunRef, calls: Sequence[ExternalCall]) -> Mapping[int, Revision]:
        """Return what calls revise that name an item, by index; raises `InvalidInput` for one that was not returned."""
        find = self.suspensions.revisions.find
        return {call.call.index: await find(call.revises, run, call.call.name) for call in calls if call.revises}

    async def _admit(self, run: RunRef, *, for_workers: bool = False) -> None:
        if self.intake is not None:
            await self.intake.admit(run.owner, for_workers=for_workers)

    def _place(self, run: RunRef) -> RunRef:
        """Return the run with its tenant and environment, and its trace where spans are on."""
        traced = self.intake is not None and self.intake.limits.otlp_endpoint is not None
        place = {"tenant": self.suspensions.tenant, "environment": self.environment}
        place["traceparent"] = current_ids.get().traceparent if traced else ""
        known = (run.tenant, run.environment, run.traceparent)
        return run if known == (*place.values(),) else run.model_copy(update=place)

    async def _check_calls(
        self,
        draft: SuspensionRecord,
        calls: Sequence[ExternalCall],
        drafts: Sequence[ItemDraft],
        foreign: Foreign | None = None,
    ) -> None:
        """Check the arguments of the calls, and save the definitions of their tools."""
        await self._check_args(draft.run.owner, calls, drafts)
        if foreign is None or foreign.fit is None:
            await self.runs.save_definitions([call.definition for call in calls])

    async def _check_args(self, owner: str, calls: Sequence[ExternalCall], drafts: Sequence[ItemDraft]) -> None:
        """Check arguments against their schemas, except one that a person will give."""
        fits = []
        for call, item in zip(calls, drafts, strict=True):
            schema, given = call.definition.parameters, item.target_arg
            schema = without_argument(schema, given) if given is not None else schema
            fits.append(Fit(schema, call.call.args, f"calls[{call.call.index}].args"))
        await self.evaluations.check_values(fits, caller=owner)


def _name(draft: SuspensionRecord, key: str, request_id: str) -> SuspensionRecord:
    run = name_run(draft.run, key, request_id)
    return draft.model_copy(update={"id": run.id.replace("run_", "sus_", 1), "run": run})


def _check_request(saved: Saved, key: str, request_id: str) -> Saved:
    if saved.record.run.request_id != request_id:
        raise IdempotencyConflict(idempotency_key=key)
    return saved
