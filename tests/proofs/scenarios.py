"""Scenarios: the actors around one run and their steps, with the real transitions or a faulty one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.records.decisions import Actor, ConfirmRequest, Decision, DecisionAction, ForwardRequest, Verdict
from sayso.core.records.deliveries import DeliveryReport, DeliveryState
from sayso.core.records.freezes import ALL, Freeze
from sayso.core.records.items import Doubt, Item, ItemDraft
from sayso.core.records.previews import Preview
from sayso.core.records.proofs import Invitation
from sayso.core.records.run_state import SealedState, seal_state
from sayso.core.records.suspensions import Change, Intent, Receipt, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.core.records.undoing import Reversal
from sayso.core.transitions import (
    deadlines,
    deciding,
    deliveries,
    execution,
    freezing,
    inquiring,
    outsiders,
    second_look,
)
from sayso.core.transitions.execution import MAX_TRIES, Fence
from sayso.core.transitions.permits import Choice, put_in_doubt, read_choice
from sayso.core.transitions.quorum import find_args
from sayso.core.transitions.second_look import Opinion, Seen, Undone
from tests.sayso.samples import T0, draft, person

GRID_MS = 3_000
"""All times of a scenario are multiples of this, the delay before a decided run is due again."""

NEXT_PHASE = {"call": "ask", "act": "end", "doubt": "end", "act again": "end"}
"""A run makes its allowed calls, asks, acts on the decisions, may ask and act again, and ends."""

STATES = {
    phase: seal_state(canonical_json({"phase": phase}))
    for phase in ("call", "ask", "act", "ask again", "act again", "doubt", "end")
}
PHASES = {state.ref.digest: phase for phase, state in STATES.items()}
_RESULT = ToolResult(call_id="call_0", tool_name="refund", success=True, output="done")
_SEEN = Seen(seq=2, tool="refund", rule_id=None, verdict="approved", reviewers=(), deciders=("anna",))
_UNDONE = Undone(
    Reversal(run_id="run_1", suspension_id="sus_1", tool="refund", call_id="c", index=0, at_ms=0),
    *(True, None, person("ben"), "sus_offer"),
)
_INVITED, _TOKEN, _CODE, _PROOF = "inv_1", "t" * 64, "c" * 64, "f" * 64
OUTSIDE = "jane@partner.example"
_OPINION = Opinion(agrees=False, reason="too much")
ALLOWED = "-"
"""The id of the call that the rules allow."""


class ReviewerStep(NamedTuple):
    """One step of a reviewer on an item of the run's n-th suspension; its start is number 0.

    With the action `again`, their edit falls under another rule.
    """

    suspension: int
    item_id: str = "i1"
    action: str = "approve"
    args: dict[str, Any] | None = None
    value: Any = None


def decide_doubt(suspension: int, choice: Choice) -> ReviewerStep:
    """Return a decision on a call in doubt."""
    return ReviewerStep(suspension, "i1", "value", value={"choice": str(choice)})


@dataclass(frozen=True)
class Transitions:
    """The transitions of the actors. Tests replace one by a faulty one."""

    decide: Callable[..., Change] = deciding.decide
    ask_again: Callable[..., Change] = deciding.ask_again
    extend: Callable[..., Change] = deciding.extend
    see: Callable[..., Change] = deadlines.see
    record_deliveries: Callable[..., Change] = deliveries.record_deliveries
    hold: Callable[..., Change] = freezing.hold
    shift_deadlines: Callable[..., Change] = freezing.shift_deadlines
    claim: Callable[..., Change] = inquiring.claim
    forward: Callable[..., Change] = deliveries.forward
    release_claim: Callable[..., Change] = inquiring.release_claim
    ask_requester: Callable[..., Change] = inquiring.ask_requester
    answer_inquiry: Callable[..., Change] = inquiring.answer_inquiry
    confirm: Callable[..., Change] = inquiring.confirm
    write_note: Callable[..., Change] = inquiring.write_note
    request_preview: Callable[..., Change] = inquiring.request_preview
    store_preview: Callable[..., Change] = inquiring.store_preview
    take_second_look: Callable[..., Change] = second_look.take_second_look
    note_undone: Callable[..., Change] = second_look.note_undone
    void_decisions: Callable[..., Change] = deciding.void_decisions
    retract: Callable[..., Change] = deciding.retract
    report: Callable[..., Change] = deciding.report
    move_cards: Callable[..., Change] = deliveries.move_cards
    invite: Callable[..., Change] = outsiders.invite
    revoke_invitation: Callable[..., Change] = outsiders.revoke_invitation
    send_code: Callable[..., Change] = outsiders.send_code
    enter_code: Callable[..., Change] = outsiders.enter_code
    decide_outside: Callable[..., Change] = outsiders.decide_outside
    cancel: Callable[..., Change] = deciding.cancel
    keep_time: Callable[..., Change] = deadlines.keep_time
    redrive: Callable[..., Change] = execution.redrive
    revive: Callable[..., Change] = execution.revive
    lease: Callable[..., Change] = execution.lease
    renew: Callable[..., Change] = execution.renew
    release: Callable[..., Change] = execution.release
    redeem: Callable[..., Change] = execution.redeem
    return_permits: Callable[..., Change] = execution.return_permits
    note_results: Callable[..., Change] = execution.note_results
    checkpoint: Callable[..., Change] = execution.checkpoint
    postpone: Callable[..., Change] = execution.postpone
    suspend_again: Callable[..., Change] = execution.suspend_again
    settle: Callable[..., Change] = execution.settle
    hand_over: Callable[..., Change] = execution.hand_over
    take_back: Callable[..., Change] = execution.take_back


@dataclass(frozen=True)
class Scenario:
    """One run and the actors around it.

    `owner_steps` are the owner's actions, in that order, at any time. `tries` is the number of tries that a new
    suspension starts with, which shortens the exploration. `copies` limits how often an id is on the ready list.
    With `hands`, decisions may hand the run to a waiting worker.
    """

    name: str
    drafts: tuple[ItemDraft, ...] = ()
    reviewers: tuple[tuple[ReviewerStep, ...], ...] = ()
    workers: tuple[str, ...] = ("w1", "w2")
    owner_steps: tuple[str, ...] = ()
    crashes: int = 3
    copies: int = 1
    tries: int = 3
    max_suspensions: int = 2
    lease_ms: int = GRID_MS
    calls: bool = False
    asks_twice: bool = False
    undrivable: bool = False
    releases: bool = False
    notes: bool = False
    unused: bool = False
    hands: bool = False
    compares: bool = True
    transitions: Transitions = Transitions()

    def begin(self) -> SuspensionRecord:
        """Return the run's first suspension, without items."""
        first_phase = "call" if self.calls else "ask" if self.drafts else "end"
        return self._draft(0).model_copy(update={"state": STATES[first_phase].ref})

    def idempotent(self, call: str) -> bool:
        """Whether the call may run twice with one key."""
        return call != ALLOWED and bool(self.drafts) and self.drafts[int(call[1:]) - 1].tool.idempotent

    def plan(self, record: SuspensionRecord, now_ms: int) -> tuple[str, ...]:
        """Return the steps of a worker that has the lease, as the runner takes them."""
        assert record.state is not None
        phase = PHASES[record.state.digest]
        if self.undrivable:
            return ("postpone",)
        if any(item.outcome is not None and item.outcome.verdict is Verdict.FAILED for item in record.items):
            return ("settle failed",)
        if any(not intent.idempotent and intent.result is None for intent in record.journal):
            return ("suspend_again in doubt",) if _number(record) + 1 < self.max_suspensions else ("settle failed",)
        last_steps = {"ask": "suspend_again", "ask again": "suspend_again", "end": "settle completed"}
        if phase in last_steps:
            return (last_steps[phase],)
        ended = {intent.index for intent in record.journal if intent.result is not None}
        asked = [item for item in record.items if _starts(item, now_ms) and item.index not in ended]
        starting = [ALLOWED] if phase == "call" else [item.item_id for item in asked]
        then = last_steps[self._next_phase(phase)]
        if not starting:
            return (then,)
        keys = " ".join(_key(record, call) for call in starting)
        runs = [f"run {call}" for call in starting]
        if self.notes and len(runs) > 1:  # the first ends while the others still run
            runs.insert(1, "note_results")
        unused = self.unused and record.receipt.tries < MAX_TRIES  # the framework stops before it starts a call
        steps = ("return_permits", "postpone") if unused else (*runs, f"checkpoint {keys}", then)
        return ("redeem", *steps)

    def apply(
        self, record: SuspensionRecord, now_ms: int, verb: tuple[Any, ...], fence: Fence | None
    ) -> tuple[str, Change]:
        """Apply a step of the actor in `verb`; return its name and the change."""
        apply, (name, _, about) = self.transitions, verb[0].partition(" ")
        if name == "review":
            return self._review(record, verb[1], verb[2], now_ms)
        if name == "tick":
            name = "keep_time" if record.status is Status.PENDING else "redrive"
            return name, getattr(apply, name)(record, now_ms)
        if fence is not None:
            return name, self._drive(record, now_ms, verb[0], fence)
        steps: dict[str, Callable[[], Change]] = {
            "cancel": lambda: apply.cancel(record, person("owner"), None, now_ms),
            "revive": lambda: apply.revive(record, person("owner"), now_ms),
            "hold": lambda: apply.hold(record, now_ms),
            "shift_deadlines": lambda: apply.shift_deadlines(record, (_ended_freeze(now_ms),), now_ms),
            "answer_inquiry": lambda: apply.answer_inquiry(record, "i1", "inq_1", "So.", person("bot"), now_ms),
            "move_cards": lambda: apply.move_cards(record, {"reviewer 1": ("reviewer 2",)}, now_ms),
            "lease": lambda: apply.lease(record, verb[1], self.lease_ms, now_ms),
            "record_deliveries": lambda: apply.record_deliveries(record, _reports(record, about), now_ms),
            "note_undone": lambda: apply.note_undone(record, _UNDONE, now_ms),
            "take_second_look": lambda: apply.take_second_look(record, _SEEN, _OPINION, person("ben"), now_ms),
            "void_decisions": lambda: apply.void_decisions(record, (f"reviewer {about}",), now_ms),
            "report": lambda: apply.report(record, about, verb[1], _RESULT, now_ms),
        }
        return name, steps[name]()

    def _drive(self, record: SuspensionRecord, now_ms: int, verb: str, fence: Fence) -> Change:
        apply, (name, _, about) = self.transitions, verb.partition(" ")
        steps: dict[str, Callable[[], Change]] = {
            "renew": lambda: apply.renew(record, fence, now_ms),
            "release": lambda: apply.release(record, fence, "stopping", now_ms),
            "take_back": lambda: apply.take_back(record, fence, now_ms),
            "postpone": lambda: apply.postpone(record, fence, "no such agent", now_ms),
            "redeem": lambda: self._redeem(record, fence, now_ms),
            "return_permits": lambda: apply.return_permits(
                record, fence, {one.index for one in record.journal}, now_ms
            ),
            "note_results": lambda: apply.note_results(record, fence, {_first_started(record): _RESULT}, now_ms),
            "checkpoint": lambda: apply.checkpoint(record, fence, self._next_state(record), (), now_ms),
            "suspend_again": lambda: self._suspend_again(record, fence, about, now_ms),
            "settle": lambda: apply.settle(record, fence, RunEnd(status=RunStatus(about)), (), now_ms),
        }
        return steps[name]()

    def _next_state(self, record: SuspensionRecord) -> SealedState:
        assert record.state is not None
        return STATES[self._next_phase(PHASES[record.state.digest])]

    def _suspend_again(self, record: SuspensionRecord, fence: Fence, about: str, now_ms: int) -> Change:
        assert record.state is not None
        following = self._draft(_number(record) + 1)
        drafts, state = self.drafts, STATES["act" if PHASES[record.state.digest] == "ask" else "act again"]
        if about == "in doubt":
            drafts, state = tuple(_doubt(one) for one in record.journal if not one.idempotent), STATES["doubt"]
        return self.transitions.suspend_again(record, fence, following, drafts, state, (), now_ms)

    def _redeem(self, record: SuspensionRecord, fence: Fence, now_ms: int) -> Change:
        """Redeem the permits; an allowed call is saved together with the state it starts from, as the desk does."""
        if record.items:
            ended = {intent.index for intent in record.journal if intent.result is not None}
            items = [item for item in record.items if _starts(item, now_ms) and item.index not in ended]
            starting = tuple(_intent(record, fence, item) for item in items)
            return self.transitions.redeem(record, fence, starting, (), now_ms)
        saved = self.transitions.checkpoint(record, fence, STATES["call"], (), now_ms)
        redeemed = self.transitions.redeem(saved.record, fence, (_intent(record, fence, None),), (), now_ms)
        return Change(redeemed.record, saved.events + redeemed.events, state=STATES["call"])

    def _review(self, record: SuspensionRecord, reviewer: int, done: int, now_ms: int) -> tuple[str, Change]:
        step, by = self.reviewers[reviewer][done], person(f"reviewer {reviewer + 1}")
        item = deciding.find_item(record, step.item_id)
        others = [person(f"reviewer {number}") for number in (1, 2) if number != reviewer + 1]
        request = ForwardRequest(to=others[0].id, digest=item.digest)
        besides: dict[str, tuple[object, ...]] = {
            "forward": (step.item_id, request, f"no_{done}", others, by),
            "see": (step.item_id, by),
            "write_note": ("note", "Soon.", by),
            "request_preview": (step.item_id, None, by),
            "store_preview": (step.item_id, Preview(content="pays", digest="p" * 64, at_ms=now_ms)),
            "invite": (step.item_id, _invite(item), by),
            "revoke_invitation": (step.item_id, _INVITED, by),
            "send_code": (step.item_id, _TOKEN, _CODE),
            "enter_code": (step.item_id, _TOKEN, _CODE, _PROOF),
        }
        if step.action in besides:
            return step.action, getattr(self.transitions, step.action)(record, *besides[step.action], now_ms)
        if step.action in ("claim", "release_claim", "retract"):
            return step.action, getattr(self.transitions, step.action)(record, step.item_id, by, now_ms)
        if step.action in ("ask_requester", "confirm"):
            asks = step.action == "ask_requester"
            return step.action, (self._ask if asks else self._confirm)(record, item, f"no_{done}", by, now_ms)
        if step.action == "extend":
            until_ms = item.terms.deadline_at_ms + GRID_MS
            return "extend", self.transitions.extend(record, step.item_id, until_ms, by, now_ms)
        decision = Decision(
            id=f"dec_{reviewer}_{done}_{len(item.voided)}",  # after a decision is voided, its person may decide anew
            suspension_id=record.id,
            suspension_version=record.version,
            item_id=step.item_id,
            action=DecisionAction("approve" if step.action in ("again", "decide_outside") else step.action),
            args=step.args,
            value=step.value,
            args_digest=item.digest,
            by=by,
            at_ms=now_ms,
        )
        if step.action == "again":
            return "ask_again", self.transitions.ask_again(record, decision, self.drafts[item.index], now_ms)
        outside = (self.transitions.decide_outside, (_TOKEN, _PROOF))
        decide, secrets = outside if step.action == "decide_outside" else (self.transitions.decide, ())
        return "decide", decide(record, decision, *secrets, now_ms)

    def _ask(self, record: SuspensionRecord, item: Item, name: str, by: Actor, now_ms: int) -> Change:
        return self.transitions.ask_requester(record, item.item_id, "inq_1", "Why?", by, now_ms)

    def _confirm(self, record: SuspensionRecord, item: Item, name: str, by: Actor, now_ms: int) -> Change:
        seen = inquiring.digest_version(record, item, find_args(item) or item.tool.args)
        said = ConfirmRequest(action="confirm", digest=seen)
        return self.transitions.confirm(record, item.item_id, said, name, by, now_ms)

    def _next_phase(self, phase: str) -> str:
        if phase == "act" and self.asks_twice:
            return "ask again"
        return "end" if phase == "call" and not self.drafts else NEXT_PHASE.get(phase, "end")

    def _draft(self, number: int) -> SuspensionRecord:
        return draft(id=f"sus_{number}", receipt=Receipt(tries=self.tries))


def _invite(item: Item) -> Invitation:
    return Invitation(
        id=_INVITED,
        address=OUTSIDE,
        by="",
        at_ms=0,
        until_ms=T0 + 3_600_000,
        digest=item.digest,
        channel="mail",
        nonce="n",
        token_hash=_TOKEN,
    )


def _number(record: SuspensionRecord) -> int:
    return int(record.id.removeprefix("sus_"))


def _starts(item: Item, now_ms: int) -> bool:
    """Whether the runner may still start the call of a decided item."""
    outcome = item.outcome
    if outcome is None or not outcome.may_run:
        return False
    if item.doubt is not None and read_choice(outcome.value).choice is not Choice.RUN_AGAIN:
        return False
    return now_ms < item.start_by_ms or item.permit is not None


def _ended_freeze(now_ms: int) -> Freeze:
    """Return a freeze of everything that ended after one step of the grid."""
    return Freeze(id="frz", scope=ALL, by="root", at_ms=now_ms - GRID_MS, unfrozen_by="root", unfrozen_at_ms=now_ms)


def _reports(record: SuspensionRecord, state: str) -> tuple[DeliveryReport, ...]:
    """Return reports that every card has been sent, or has failed."""
    update = {"state": DeliveryState(state)}
    return tuple(
        DeliveryReport(item.item_id, one.key, (one.model_copy(update=update),))
        for item in record.items
        for one in item.deliveries
    )


def _first_started(record: SuspensionRecord) -> int:
    """Return the index of the call that ends first."""
    return record.journal[0].index if record.journal else 0


def _key(record: SuspensionRecord, call: str) -> str:
    """Return the idempotency key of a call."""
    item = next((one for one in record.items if one.item_id == call), None)
    return item.doubt.idempotency_key if item is not None and item.doubt is not None else f"{record.id}:{call}"


def _doubt(intent: Intent) -> ItemDraft:
    """Return the item about a call in doubt, with times on the scenario's grid."""
    doubt = Doubt(
        begun_at_ms=intent.begun_at_ms,
        holder=intent.holder,
        attempt=intent.attempt,
        idempotency_key=intent.idempotency_key,
    )
    args: JsonObject = {"order": "A-0"}
    ask = put_in_doubt(ToolCall(call_id=intent.call_id, index=intent.index, name="refund", args=args), "d" * 64, doubt)
    terms = ask.terms.model_copy(update={"timeout_s": 2 * GRID_MS // 1000, "start_by_s": 2 * GRID_MS // 1000})
    return ask.model_copy(update={"terms": terms})


def _intent(record: SuspensionRecord, fence: Fence, item: Item | None) -> Intent:
    call = item.item_id if item is not None else ALLOWED
    return Intent(
        item_id=item.item_id if item is not None else None,
        call_id=call,
        index=item.index if item is not None else 0,
        tool="refund",
        idempotency_key=_key(record, call),
        idempotent=item.tool.idempotent if item is not None else False,
        attempt=fence.attempt,
        holder=fence.holder,
        begun_at_ms=record.updated_at_ms,
    )
