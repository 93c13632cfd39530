"""Record what people do: decide, extend, cancel, withdraw, revive; claim items, and ask their requesters."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from sayso.core.clock import new_id, new_number
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import FinalJudgement, describe_item, judge_final, list_wanted
from sayso.core.records.decisions import Actor, Decision, DecisionAction, DecisionRequest, Shown
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Item, ItemDraft, ItemKind, assign_numbers, final_args
from sayso.core.records.permissions import Denial, Grant
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.schemas.validators import has_whole_fraction, settle_integers, settle_object
from sayso.core.transitions.deadlines import see
from sayso.core.transitions.deciding import (
    ask_again,
    cancel,
    defer_effects,
    extend,
    find_item,
    list_made,
    replace_own,
    retract,
    void_decisions,
)
from sayso.core.transitions.decision_checks import check_canceller, check_draft, check_open, request_changes
from sayso.core.transitions.execution import revive
from sayso.core.transitions.freezing import check_in_time, lost_ms
from sayso.core.transitions.inquiring import answer_inquiry, ask_requester, claim, release_claim
from sayso.core.transitions.permits import check_choice
from sayso.errors import Conflict, DeadlinePassed, InvalidInput, PolicyForbids, SaysoError, WrongNumber
from service.core.desk.changes import Changes, build_idempotency
from service.core.desk.scheduling import Scheduling
from service.core.desk.worker_execution import Handing
from service.core.policy.evaluations import Evaluations
from service.core.store.attempts import Allowance, Attempts
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.saving import Saved, Verb
from service.core.store.tenants import Proven

NUMBERS = Allowance("match-number", most=3, window_s=600)  # wrong numbers that one reviewer may type for one item
GUESSES = Allowance("match-numbers", most=10, window_s=3_600)  # wrong numbers that one reviewer may type for all items


def _state(record: SuspensionRecord, item_id: str, request: DecisionRequest, by: Actor, at_ms: int) -> Decision:
    """Return a request as a decision, which has no id of its own yet."""
    return Decision(
        id="dec_draft",
        suspension_id=record.id,
        suspension_version=record.version,
        item_id=item_id,
        action=DecisionAction(request.action),
        args=request.args,
        value=request.value,
        message=request.message,
        args_digest=request.digest,
        number=request.number,
        by=by,
        at_ms=at_ms,
        changes=request_changes(find_item(record, item_id), request),
    )


Check = Callable[[], Awaitable[None]]
"""Raises where nothing may be decided."""


async def allow() -> None:
    """Let everything be decided."""


@dataclass(frozen=True)
class Reviewing:
    """Operations of people and owners on suspensions and runs."""

    changes: Changes
    runs: Runs
    policy: Callable[[], Policy]
    evaluations: Evaluations
    scheduling: Scheduling
    attempts: Attempts | None
    handing: Handing
    check: Check = allow

    async def decide(
        self,
        suspension_id: str,
        item_id: str,
        request: DecisionRequest,
        by: Actor,
        key: str | None = None,
        asker: str | None = None,
        shown: Shown | None = None,
        replaced: str = "",
    ) -> Saved:
        """Record one reviewer's decision on one item. `asker` owns the key when that is not the reviewer.

        `shown` is recorded with it, and None means not measured. It takes the place of the reviewer's own decision
        `replaced`, in one commit; raises `Conflict` if that no longer counts.

        Edited arguments and given values must fit the tool's schema. If the rules deny the final arguments, raises
        `PolicyForbids`; another rule that needs approval renews the item. Raises what the transition raises, and
        `TooManyRequests` after three wrong numbers, or ten in an hour for all items.
        """
        content = request.model_dump(mode="json", exclude={"code"}) if key else None  # the next code may repeat it
        seen = build_idempotency(asker or by.id, key, ["decide", suspension_id, item_id, by.id, content], suspension_id)
        decision_id = f"dec_{sha256(f'{by.id} {key}'.encode()).hexdigest()[:32]}" if key else new_id("dec")
        changed = request.action == "value" or request.args is not None
        request = await self.settle(suspension_id, item_id, request) if changed else request
        renewed = await self._check_answer(suspension_id, item_id, request, by.id) if changed else None
        if renewed is not None and request.grant is not None:
            raise InvalidInput("These arguments need another decision. Approve them first, and grant like calls then.")
        await self.check()
        proven = await self._prove(suspension_id, item_id, decision_id, request, by)
        await self.handing.prepare()
        freezes, policy = await self.changes.freezes(), self.policy()
        covering = await self._find_denied(policy, suspension_id, item_id) if request.action == "deny" else ()

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            decision = _state(record, item_id, request, by, now_ms).model_copy(
                update={
                    "id": decision_id,
                    "shown": shown,
                    "proof": proven.proof,
                    "code_used": proven.code_used,
                    "idempotency_key": key,
                    "suspends": tuple(grant.id for grant in covering),
                }
            )
            frozen_ms = self.frozen_ms(record, item_id, freezes, now_ms)
            if renewed is not None:
                return ask_again(record, decision, renewed, now_ms, frozen_ms)
            change = self.changes.suspensions.hooks.consequences.decide(
                policy, record, decision, request, now_ms, frozen_ms
            )
            denial = Denial(by=by.id, at_ms=now_ms, suspension_id=suspension_id, item_id=item_id)
            suspended = tuple(grant.model_copy(update={"denial": denial}) for grant in covering)
            return defer_effects(record, change, item_id, suspended)

        async with (
            self.ticking(suspension_id),
            self._counted(request.number is not None, f"{suspension_id} {item_id} {by.id}", by.id),
        ):
            verb = self._replace(transition, item_id, decision_id, replaced, by, freezes) if replaced else transition
            handing = self.handing.hand_on(verb, freezes)
            return await self.changes.change_counted(suspension_id, item_id, handing, seen)

    async def _prove(
        self, suspension_id: str, item_id: str, decision_id: str, request: DecisionRequest, by: Actor
    ) -> Proven:
        """Return what secures a decision: nothing for one that needs none, or was recorded before."""
        if request.signed is None and request.code is None:
            return Proven()
        item = find_item((await self.changes.suspensions.read(suspension_id)).record, item_id)
        needed = item.terms.step_up is not None and item.open and request.digest == item.digest
        if not needed or request.action == "deny" or decision_id in [decision.id for decision in list_made(item)]:
            return Proven()
        return await self.changes.suspensions.prove(item, request, by)

    def _replace(
        self, decide: Verb, item_id: str, decision_id: str, replaced: str, by: Actor, freezes: tuple[Freeze, ...]
    ) -> Verb:
        """Return a decision that takes the place of its author's earlier one; repeated, it changes nothing."""

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            if decision_id in [decision.id for decision in list_made(find_item(record, item_id))]:
                return decide(record, now_ms)
            frozen_ms = self.frozen_ms(record, item_id, freezes, now_ms)
            taken = replace_own(record, item_id, replaced, by, now_ms, frozen_ms)
            change = decide(taken.record, now_ms)
            return change._replace(events=taken.events + change.events)

        return transition

    async def judge_edit(self, suspension_id: str, item_id: str, request: DecisionRequest, by: Actor) -> FinalJudgement:
        """Return what the rules say of edited arguments. Records nothing; raises as `decide`, but for the number."""
        saved = await self.changes.suspensions.read(suspension_id)
        record, item = saved.record, find_item(saved.record, item_id)
        draft = _state(record, item_id, request, by, saved.now_ms)
        frozen_ms = self.frozen_ms(record, item_id, await self.changes.freezes(), saved.now_ms)
        check_draft(record, item, draft, "decide", saved.now_ms - frozen_ms)
        return await self._judge(record, item, request, by.id)

    @asynccontextmanager
    async def ticking(self, suspension_id: str) -> AsyncIterator[None]:
        """Apply what is due for the suspension where a change of it comes too late."""
        try:
            yield
        except DeadlinePassed:
            await self.scheduling.tick(suspension_id)
            raise

    @asynccontextmanager
    async def _counted(self, guessing: bool, who: str, reviewer: str) -> AsyncIterator[None]:
        """Count a typed number before it is compared, and take a right one back; raises `TooManyRequests`."""
        if not guessing or self.attempts is None:
            yield
            return
        await self.attempts.count(NUMBERS, who)
        await self.attempts.count(GUESSES, reviewer)
        try:
            yield
        except WrongNumber:
            raise
        except SaysoError as error:
            refusal: SaysoError | None = error
        else:
            refusal = None
        await self.attempts.forget(NUMBERS, who)
        await self.attempts.take_back(GUESSES, reviewer)
        if refusal is not None:
            raise refusal

    async def cancel(
        self, run_id: str, by: Actor, reason: str | None = None, key: str | None = None, *, is_admin: bool = False
    ) -> Saved:
        """Cancel a run at its latest suspension; raises `Conflict` when it has ended, and `NotAllowed`."""
        seen = build_idempotency(by.id, key, ["cancel", run_id, reason], run_id)

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            if record.following_id is not None or (record.end is not None and record.status is not Status.CANCELLED):
                return Change(record)  # the run has ended or reached its next suspension, and is read again
            check_canceller(record, by, is_admin=is_admin)
            return cancel(record, Actor(id=by.id, kind=by.kind, channel=by.channel), reason, now_ms)

        while True:
            run = await self.runs.read(run_id)
            if run.status.ended and run.status != "cancelled":
                raise Conflict(
                    f"The run has already ended: {run.status}. There is nothing to cancel.", status=run.status
                )
            saved = await self.changes.change(run.suspension_id, transition, seen)
            if saved.record.status is Status.CANCELLED:
                return saved

    async def void_decisions(self, suspension_id: str, inactive: Collection[str]) -> Saved:
        """Void the decisions of deactivated people on open items; without any, change nothing."""

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            return void_decisions(record, inactive, now_ms) if record.status is Status.PENDING else Change(record)

        return await self.changes.change(suspension_id, transition)

    async def retract(self, suspension_id: str, item_id: str, by: Actor) -> Saved:
        """Take back one's decision while the quorum is short; raises as the transition does."""

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            return retract(record, item_id, by, now_ms, lost_ms)

        return await self._act(suspension_id, await self.in_time(item_id, act))

    async def withdraw(self, suspension_id: str, by: Actor) -> Saved:
        """Cancel a pending suspension for its owner, idempotently; raises `AlreadyDecided`, `DeadlinePassed`."""

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            check_open(record, now_ms)
            return cancel(record, by, None, now_ms)

        return await self._act(suspension_id, transition)

    async def revive(self, suspension_id: str, by: Actor, key: str | None = None, run_id: str = "") -> Saved:
        """Retry a failed run; a repeated key returns the suspension that the run has reached since."""
        seen = build_idempotency(by.id, key, ["revive", run_id], suspension_id)
        return await self.changes.change(suspension_id, lambda record, now_ms: revive(record, by, now_ms), seen)

    async def extend(self, suspension_id: str, item_id: str, until_ms: int, by: Actor, key: str | None = None) -> Saved:
        seen = build_idempotency(by.id, key, ["extend", suspension_id, item_id, until_ms], suspension_id)

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            return extend(record, item_id, until_ms, by, now_ms, lost_ms)

        return await self.changes.change(suspension_id, await self.in_time(item_id, act), seen)

    async def see(self, suspension_id: str, item_id: str, by: Actor) -> Saved:
        """Record that a reviewer has seen an item where its fallback depends on it."""

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            return see(record, item_id, by, now_ms) if record.status is Status.PENDING else Change(record)

        return await self.changes.change(suspension_id, transition)

    async def claim(self, suspension_id: str, item_id: str, by: Actor) -> Saved:
        """Claim an item for 15 minutes; raises `Conflict` while another reviewer holds it."""

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            return claim(record, item_id, by, now_ms, lost_ms)

        return await self._act(suspension_id, await self.in_time(item_id, act))

    async def release_claim(self, suspension_id: str, item_id: str, by: Actor) -> Saved:
        return await self._act(suspension_id, lambda record, now_ms: release_claim(record, item_id, by, now_ms))

    async def ask_requester(
        self, suspension_id: str, item_id: str, text: str, by: Actor, key: str | None = None
    ) -> Saved:
        """Put a question to the requester; a repeated `key` of the same reviewer asks once."""
        inquiry_id = f"inq_{sha256(f'{by.id} {key}'.encode()).hexdigest()[:32]}" if key else new_id("inq")

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            return ask_requester(record, item_id, inquiry_id, text, by, now_ms, lost_ms)

        return await self._act(suspension_id, await self.in_time(item_id, act))

    async def answer_inquiry(self, suspension_id: str, item_id: str, inquiry_id: str, text: str, by: Actor) -> Saved:
        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            return answer_inquiry(record, item_id, inquiry_id, text, by, now_ms, lost_ms)

        return await self._act(suspension_id, await self.in_time(item_id, act))

    async def _act(self, suspension_id: str, transition: Verb) -> Saved:
        async with self.ticking(suspension_id):
            return await self.changes.change(suspension_id, transition)

    async def in_time(self, item_id: str, act: Callable[[SuspensionRecord, int, int], Change]) -> Verb:
        """Return the transition of an item that must come in time, given how long freezes held it, ms."""
        freezes = await self.changes.freezes()
        return lambda record, now_ms: act(record, now_ms, self.frozen_ms(record, item_id, freezes, now_ms))

    def frozen_ms(self, record: SuspensionRecord, item_id: str, freezes: tuple[Freeze, ...], now_ms: int) -> int:
        """Return how long freezes held the item; raises `ClockInDoubt` if its deadline may have passed."""
        known = self.changes.doubt_time(freezes, now_ms)
        if not known:
            return 0
        item = find_item(record, item_id)
        frozen_ms = lost_ms(record, item, known, now_ms)
        check_in_time(known, record, item, now_ms - frozen_ms)
        return frozen_ms

    async def settle(self, suspension_id: str, item_id: str, request: DecisionRequest) -> DecisionRequest:
        """Return the request with `3` for a `3.0` that its schema takes for an integer."""
        if not has_whole_fraction([request.args, request.value]):
            return request
        item = find_item((await self.changes.suspensions.read(suspension_id)).record, item_id)
        definition = await self.runs.definition(item.tool.definition)
        parameters = definition.parameters if definition is not None else {}
        args = settle_object(parameters, request.args) if request.args is not None else None
        value = settle_integers(item.response_schema or {}, request.value)
        if item.target_arg is not None:
            value = settle_object(parameters, {item.target_arg: value})[item.target_arg]
        return request.model_copy(update={"args": args, "value": value})

    async def _check_answer(
        self, suspension_id: str, item_id: str, request: DecisionRequest, caller: str
    ) -> ItemDraft | None:
        record = (await self.changes.suspensions.read(suspension_id)).record
        item = find_item(record, item_id)
        if not item.open or item.digest != request.digest:  # the digest ties the commit to this item
            return None
        if request.action == "value":
            if item.kind is not ItemKind.INPUT:
                raise InvalidInput("This item asks for approval, not for a value; send approve or deny.")
            if item.response_schema is not None:
                schema = item.response_schema
                await self.evaluations.check_value(schema, request.value, "value", caller=caller, formats=True)
            if item.doubt is not None:
                check_choice(request.value)
        renewed = (await self._judge(record, item, request, caller)).renewed
        if renewed is None:
            return None
        renewed = renewed.model_copy(update={"learning": None})  # its arguments are a person's, not the agent's
        if item.drawn and renewed.terms.quorum.approve >= item.terms.quorum.approve:
            renewed = renewed.model_copy(update={"drawn": item.drawn})  # it keeps the approval that it was drawn for
            return assign_numbers(self.changes.suspensions.sampling.add_undo((renewed,)), new_number)[0]
        renewed = assign_numbers(await self.changes.suspensions.sampling.draw((renewed,), record.run), new_number)[0]
        if renewed.preset is not None:
            raise PolicyForbids(renewed.preset.message)
        return renewed

    async def _find_denied(self, policy: Policy, suspension_id: str, item_id: str) -> tuple[Grant, ...]:
        suspensions = self.changes.suspensions

        async def read() -> SuspensionRecord:
            return (await suspensions.read(suspension_id)).record

        return await suspensions.hooks.consequences.find_denied(policy, item_id, read, suspensions.recall)

    async def _judge(
        self, record: SuspensionRecord, item: Item, request: DecisionRequest, caller: str
    ) -> FinalJudgement:
        args = final_args(item, edited=request.args, value=request.value)
        definition = await self.runs.definition(item.tool.definition)
        if definition is not None:
            await self.evaluations.check_value(definition.parameters, args, "args", caller=caller)
        policy = self.policy()
        described = (describe_item(record, item, args),)
        wanted = await self.evaluations.judge(partial(list_wanted, policy, described), caller=caller)
        readings = await self.changes.suspensions.recall(wanted)
        about = (record, item, args, definition, readings)
        return await self.evaluations.judge(partial(judge_final, policy, *about), caller=caller)
