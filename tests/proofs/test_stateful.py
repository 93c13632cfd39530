"""The whole machine against the real server, beside a model of it that is as simple as can be.

Everybody who can change a run does so in any order, at any time, with replies that are lost: each step comes to what
the model says, and after each the records, every index and every trail are exactly what they must be.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from redis.asyncio import Redis

from sayso.decisions import DecisionRequest
from sayso.doubts import ask_in_doubt
from sayso.errors import SaysoError
from sayso.events import Event, EventType
from sayso.pauses import suspend
from sayso.policies import Action, Policy
from sayso.requests import Answer, Ask, AskedTool, Doubt, ItemKind
from sayso.resumptions import Fence
from sayso.states import seal_state
from sayso.suspensions import Intent, RunEnd, RunRef, RunStatus, SuspensionRecord
from sayso.terms import RuleTerms
from sayso.tool_calls import ToolCall, ToolResult
from service.desk import Desk, draft_suspension
from service.store.agenda import Agenda
from service.store.commits import Idempotency
from service.store.connections import connect
from service.store.keys import TenantKeys
from service.store.runs import Runs
from service.store.suspensions import Saved
from tests.proofs import models
from tests.proofs.indexes import expect_indexes, find_detour, read_indexes
from tests.proofs.models import Pause, Refused, Run, Thing
from tests.proofs.shaky import FAULTS, ShakySuspensions
from tests.sayso.records import T0, person

LEASE_MS = 4_000
MOST_RUNS = 3
MANY = 9
"""From so many events on a run may be cancelled, or most would be before anything has happened to them."""

EXAMPLES, STEPS = 100, 40
REVIEWERS = ("ada", "ada", "bob", "bob", "bot")
"""`bot` is who asked for every run, and may not decide."""

WORKERS = ("w1", "w2")
STATE = seal_state(b'{"messages": []}')
RAN = (Event(type=EventType.TOOL_COMPLETED, data={"tool_name": "refund"}),)
RESULT = ToolResult(call_id="call_0", tool_name="refund", success=True, output="done")
tenants = count()

T = TypeVar("T")

ASKS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([ItemKind.APPROVAL, ItemKind.APPROVAL, ItemKind.INPUT]),
        "timeout_s": st.sampled_from([5, 9, 9, 0]),
        "quorum": st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 2)]),
        "reviewers": st.sampled_from([(), (), ("ada",), ("ada", "bob")]),
        "fallback": st.sampled_from(["deny", "approve", "approve", "fail", "escalate"]),
        "start_by_s": st.sampled_from([3, 60, 60]),
        "remind_after_s": st.sampled_from([(), (1, 3)]),
        "escalate": st.sampled_from([(), (2,), (3, 20)]),
        "extend_by_s": st.sampled_from([0, 4, 4]),
        "idempotent": st.booleans(),
    }
)
BATCHES = st.lists(ASKS, min_size=1, max_size=2)
PLACES = st.integers(0, 11)
LATE = st.sampled_from([False] * 9 + [True])
FAULT = st.sampled_from([None, None, None, None, *FAULTS])


@dataclass
class World:
    """What outlasts one example: the event loop and the connections."""

    loop: asyncio.Runner
    redis: Redis
    blocking: Redis


@dataclass
class Held:
    """One suspension: its id and how the model sees it; the digests of its things under each of their terms."""

    id: str
    run_id: str
    pause: Pause
    known: Saved | None = None
    """What whoever drives it saved last, so that its next step need not look first."""

    digests: dict[tuple[int, int], str] = field(default_factory=dict)


def ask_of(place: int, drawn: dict[str, Any]) -> Ask:
    given = drawn["kind"] is ItemKind.INPUT
    steps = [{"after_s": after_s, "reviewers": ("bob", f"boss-{after_s}")} for after_s in drawn["escalate"]]
    fallback = "value" if given and drawn["fallback"] == "approve" else drawn["fallback"]
    if fallback == "escalate" and not steps:
        fallback = "deny"
    return Ask(
        kind=drawn["kind"],
        call_id=f"call_{place}",
        index=place,
        tool=AskedTool(name="refund", args={"amount": 1}, definition="d" * 64, idempotent=drawn["idempotent"]),
        allowed=(Answer.VALUE, Answer.DENY) if given else (Answer.APPROVE, Answer.EDIT, Answer.DENY),
        target_arg="amount" if given else None,
        terms=RuleTerms(
            timeout_s=drawn["timeout_s"],
            extend_by_s=drawn["extend_by_s"],
            start_by_s=drawn["start_by_s"],
            quorum={"approve": drawn["quorum"][0], "deny": drawn["quorum"][1]},
            reviewers=drawn["reviewers"],
            remind_after_s=drawn["remind_after_s"],
            escalate=steps,
            unattended_approval=fallback == "approve",
            fallback={"action": fallback, **({"value": 7} if fallback == "value" else {})},
        ),
    )


def thing_of(ask: Ask, now: int) -> Thing:
    terms = ask.terms
    return Thing(
        kind="doubt" if ask.doubt else str(ask.kind),
        deadline=now + terms.timeout_s * 1000,
        created=now,
        quorum=(terms.quorum.approve, terms.quorum.deny),
        reviewers=terms.reviewers,
        fallback=str(terms.fallback.action),
        start_by_ms=terms.start_by_s * 1000,
        remind=[now + after_s * 1000 for after_s in terms.remind_after_s],
        steps=[(now + step.after_s * 1000, step.reviewers) for step in terms.escalate],
        extend_until=now + (terms.timeout_s + terms.extend_by_s) * 1000 if terms.extend_by_s else 0,
        idempotent=ask.tool.idempotent,
        doubt=(ask.doubt.idempotency_key, ask.doubt.holder) if ask.doubt else None,
    )


def describe(record: SuspensionRecord) -> dict[str, Any]:
    """What the model knows of a record, as the record has it."""
    return {
        "status": str(record.status),
        "look": record.look_at_ms,
        "lease": (record.lease.holder, record.lease.attempt, record.lease.until_ms) if record.lease else None,
        "counts": (record.receipt.tries, record.receipt.redrives),
        "journal": {intent.index for intent in record.journal},
        "end": str(record.end.status) if record.end else None,
        "things": [
            {
                "words": [one.by.id for one in item.decisions if one.by.id != "timeout"],
                "outcome": (str(item.outcome.verdict), item.outcome.by.id) if item.outcome else None,
                "start_by": item.outcome.start_by_ms if item.outcome else 0,
                "terms": (item.terms.deadline_at_ms, item.terms.reviewers, item.reminded, item.escalated),
                "spent": item.permit is not None,
            }
            for item in record.items
        ],
    }


def describe_model(pause: Pause) -> dict[str, Any]:
    return {
        "status": pause.status,
        "look": pause.look,
        "lease": (pause.holder, pause.attempt, pause.until) if pause.holder else None,
        "counts": (pause.tries, pause.redrives),
        "journal": pause.journal,
        "end": pause.end,
        "things": [
            {
                "words": list(thing.words),
                "outcome": (thing.verdict, thing.by) if thing.verdict else None,
                "start_by": thing.start_by,
                "terms": (thing.deadline, thing.reviewers, thing.reminded, thing.escalated),
                "spent": thing.spent,
            }
            for thing in pause.things
        ],
    }


class Machine(RuleBasedStateMachine):
    """Everybody who can change a run; an example is a tenant of its own."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.tenant = f"t{next(tenants)}"
        self.store = ShakySuspensions(world.redis, T0)
        self.runs = Runs(world.redis)
        self.desk = Desk(self.store, self.runs, lambda: Policy(default=Action.ALLOW))
        self.agenda = Agenda(world.redis, world.blocking)
        self.held: list[Held] = []
        self.known: dict[str, Run] = {}
        self.ready: list[str] = []
        self.said: list[Callable[[], Coroutine[Any, Any, Saved]]] = []

    @property
    def now(self) -> int:
        return self.store.now_ms

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.world.loop.run(coroutine)

    def standing(self, *statuses: str) -> list[Held]:
        return [held for held in self.held if held.pause.status in statuses]

    def prefer(self, place: int, *statuses: str) -> Held:
        """Pick a suspension: mostly one that stands so, where there is any."""
        preferred = self.standing(*statuses) if place else []
        return (preferred or self.held)[place % len(preferred or self.held)]

    def act(
        self,
        call: Callable[[], Coroutine[Any, Any, Saved]],
        predict: Callable[[], object],
        fault: str | None = None,
        *,
        keyed: bool = False,
    ) -> Saved | None:
        """Take a step for real and in the model: both come to the same, whatever became of the reply.

        A caller without an answer that has a key repeats the request; one without (a worker) gives up.
        """
        self.store.fault, self.store.ran = fault, False
        saved, error = self.attempt(call)
        self.store.fault = None
        if error == "Unavailable":
            if self.store.ran:
                predict()
                if keyed:
                    saved, error = self.attempt(call)
                    assert (error, saved and saved.repeated) == (None, True), "a repeated request is told it was done"
                    self.said.append(call)
                return saved
            if not keyed:
                return None
            saved, error = self.attempt(call)
        assert error == refusal_of(predict)
        if keyed and error is None:
            self.said.append(call)
        return saved

    def attempt(self, call: Callable[[], Coroutine[Any, Any, Saved]]) -> tuple[Saved | None, str | None]:
        try:
            return self.wait(call()), None
        except SaysoError as error:
            return None, type(error).__name__

    def hold(self, suspension_id: str, pause: Pause) -> Held:
        held = Held(suspension_id, self.run_of(pause), pause)
        self.held.append(held)
        return held

    def run_of(self, pause: Pause) -> str:
        return next(run_id for run_id, run in self.known.items() if run is pause.run)

    def note_ready(self, suspension_id: str, run: Run) -> None:
        self.ready += [suspension_id] * run.ready
        run.ready = 0

    # Whoever asks

    def begin(self, asks: tuple[Ask, ...], key: str, fault: str | None) -> None:
        run, run_id = Run("bot"), f"run_{len(self.known)}"
        self.known[run_id] = run
        ref = RunRef(id=run_id, agent="a", owner="bot", thread_id="t")

        def call() -> Coroutine[Any, Any, Saved]:
            if not asks:
                return self.desk.start(self.tenant, ref, STATE, key=key, request="the same")
            draft = draft_suspension(self.tenant, ref, state=None)
            seen = Idempotency("bot", key, "the same", draft.id)
            return self.store.create(self.tenant, draft.id, lambda now_ms: suspend(draft, asks, now_ms), seen)

        saved = self.act(
            call, lambda: models.start(run, [thing_of(ask, self.now) for ask in asks], self.now), fault, keyed=True
        )
        assert saved is not None
        self.hold(saved.record.id, run.pauses[0])
        self.note_ready(saved.record.id, run)

    @precondition(lambda self: len(self.known) < MOST_RUNS)
    @rule(fault=FAULT)
    def start(self, fault: str | None) -> None:
        self.begin((), f"start-{len(self.known)}", fault)

    @precondition(lambda self: len(self.known) < MOST_RUNS)
    @rule(batch=BATCHES, fault=FAULT)
    def ask(self, batch: list[dict[str, Any]], fault: str | None) -> None:
        self.begin(tuple(ask_of(place, drawn) for place, drawn in enumerate(batch)), f"ask-{len(self.known)}", fault)

    @precondition(lambda self: any(len(run.tale) > MANY for run in self.known.values()))
    @rule(place=PLACES, fault=FAULT)
    def cancel(self, place: int, fault: str | None) -> None:
        held = self.held[place % len(self.held)]
        run = held.pause.run
        latest = next(one for one in reversed(self.held) if one.pause is run.pauses[-1])

        def predict() -> None:
            if latest.pause.end not in (None, "cancelled"):
                raise Refused("Conflict")
            models.cancel(latest.pause)

        self.act(
            lambda: self.desk.cancel(self.tenant, held.run_id, person("bot"), key=f"cancel-{held.run_id}"),
            predict,
            fault,
            keyed=True,
        )

    @precondition(lambda self: len(self.said) > MOST_RUNS)
    @rule(place=PLACES)
    def repeat(self, place: int) -> None:
        """A request that was carried out is sent again, long after: it is told so, and nothing happens."""
        saved, error = self.attempt(self.said[place % len(self.said)])
        assert (error, saved and saved.repeated) == (None, True)

    # Whoever decides

    @precondition(lambda self: self.standing("pending") or len(self.held) > MOST_RUNS)
    @rule(
        place=PLACES,
        item=st.integers(0, 1),
        by=st.sampled_from(REVIEWERS),
        action=st.sampled_from(["approve", "approve", "edit", "deny", "value"]),
        stale=st.sampled_from([False, False, False, True]),
        fault=FAULT,
    )
    def decide(self, place: int, item: int, by: str, action: str, stale: bool, fault: str | None) -> None:
        held = self.prefer(place, "pending")
        if not held.pause.things:
            return
        item %= len(held.pause.things)
        thing = held.pause.things[item]
        if action in ("approve", "edit") and thing.kind != "approval":
            action = "value"
        if action == "value" and thing.kind == "approval":
            action = "approve"
        generation = max(0, thing.generation - stale)
        values = {"doubt": {"choice": "skip"}, "input": 3}
        request = DecisionRequest(
            digest=held.digests.get((item, generation), "0" * 64),
            action="approve" if action == "edit" else action,
            **({"args": {"amount": 2}} if action == "edit" else {}),
            **({"value": values[thing.kind]} if action == "value" else {}),
        )
        key = f"{held.id} {item} {by} {action} {generation}"
        late = thing.open and held.pause.status == "pending" and self.now >= thing.deadline

        def predict() -> None:
            try:
                models.decide(
                    held.pause, thing, by, request.action, "edit" if action == "edit" else "", generation, self.now
                )
            except Refused as refused:
                if refused.error == "DeadlinePassed":
                    models.look(held.pause, self.now)
                raise

        if not any(key in str(one.__defaults__) for one in self.said):  # the same key again is `repeat`

            def call(_key: str = key) -> Coroutine[Any, Any, Saved]:
                return self.desk.decide(self.tenant, held.id, f"i{item + 1}", request, person(by), key)

            self.act(call, predict, None if late else fault, keyed=True)
        self.note_ready(held.id, held.pause.run)

    @precondition(
        lambda self: any(thing.extend_until for held in self.standing("pending") for thing in held.pause.open)
    )
    @rule(place=PLACES, by=st.sampled_from(REVIEWERS), more_s=st.sampled_from([1, 4, 30]), fault=FAULT)
    def extend(self, place: int, by: str, more_s: int, fault: str | None) -> None:
        held = self.prefer(place, "pending")
        if not held.pause.things:
            return
        thing = held.pause.things[0]
        until = thing.deadline + more_s * 1000
        self.act(
            lambda: self.desk.extend(self.tenant, held.id, "i1", until, person(by)),
            lambda: models.extend(held.pause, thing, by, until, self.now),
            fault,
        )

    # Time

    @precondition(lambda self: self.held)
    @rule(step=st.sampled_from(["before", "at", "at", "after", "short"]))
    def pass_time(self, step: str) -> None:
        """Time passes to the next moment that counts, or until just before or after it."""
        moments = [
            moment
            for held in self.held
            for moment in (
                held.pause.look or 0,
                held.pause.until,
                *(thing.start_by for thing in held.pause.things),
                *(thing.deadline for thing in held.pause.things),
            )
        ]
        moment = min((one for one in moments if one > self.now), default=self.now + 1000)
        moment += {"before": -1, "at": 0, "after": 1, "short": -(moment - self.now) // 2}[step]
        self.store.now_ms = max(self.now, moment)

    @precondition(lambda self: self.standing("pending", "decided", "resuming"))
    @rule(place=PLACES, fault=FAULT)
    def look(self, place: int, fault: str | None) -> None:
        held = self.prefer(place, "pending", "decided", "resuming")
        self.act(lambda: self.desk.look(self.tenant, held.id), lambda: models.look(held.pause, self.now), fault)
        self.note_ready(held.id, held.pause.run)

    @property
    def due(self) -> list[Held]:
        return [held for held in self.held if held.pause.look is not None and held.pause.look <= self.now]

    @precondition(lambda self: self.due)
    @rule()
    def beat(self) -> None:
        """The clock looks at all that is due."""
        for suspension_id in self.wait(self.agenda.due(self.tenant, self.now)):
            held = next(one for one in self.held if one.id == suspension_id)
            self.act(
                lambda held=held: self.desk.look(self.tenant, held.id),
                lambda held=held: models.look(held.pause, self.now),
            )
            self.note_ready(held.id, held.pause.run)

    # Whoever drives

    @precondition(lambda self: self.ready)
    @rule(worker=st.sampled_from(WORKERS), fault=FAULT)
    def take(self, worker: str, fault: str | None) -> None:
        (taken,) = self.wait(self.agenda.take(self.tenant, 1))
        assert taken.id == self.ready.pop(0)
        held = next(one for one in self.held if one.id == taken.id)
        self.lease_held(held, worker, fault)

    @precondition(lambda self: self.standing("decided", "resuming"))
    @rule(place=PLACES, worker=st.sampled_from(WORKERS), fault=FAULT)
    def lease(self, place: int, worker: str, fault: str | None) -> None:
        self.lease_held(self.prefer(place, "decided"), worker, fault)

    def lease_held(self, held: Held, worker: str, fault: str | None) -> None:
        held.known = self.act(
            lambda: self.desk.lease(self.tenant, held.id, worker, LEASE_MS),
            lambda: models.lease(held.pause, worker, LEASE_MS, self.now),
            fault,
        )

    def drive(
        self,
        place: int,
        late: bool,
        fault: str | None,
        call: Callable[[Held, Fence], Coroutine[Any, Any, Saved]],
        predict: Callable[[Pause], object],
        check: Callable[[Pause], object] = lambda _: None,
        *,
        settles: bool = False,
    ) -> tuple[Held, Saved | None]:
        """Let whoever holds the lease of a run take a step, or whoever held the one before."""
        held = self.prefer(place, "resuming")
        fence = Fence(held.pause.holder or "w1", held.pause.attempt - late, LEASE_MS)

        def predict_fenced() -> None:
            if settles and (held.pause.status, held.pause.holder) == ("resumed", fence.holder):
                return  # it did so before, and was not told
            models.check_fence(held.pause, (fence.holder, fence.attempt))
            check(held.pause)
            models.renew(held.pause, LEASE_MS, self.now)
            predict(held.pause)

        saved = self.act(lambda: call(held, fence), predict_fenced, fault)
        held.known = saved or held.known
        if held.pause is held.pause.run.pauses[-1]:
            self.note_ready(held.id, held.pause.run)
        return held, saved

    @precondition(lambda self: self.standing("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def renew(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(place, late, fault, lambda held, fence: self.desk.renew(self.tenant, held.id, fence), lambda _: None)

    @precondition(lambda self: self.standing("resuming"))
    @rule(place=PLACES, late=LATE, every=LATE, with_state=st.booleans(), fault=FAULT)
    def redeem(self, place: int, late: bool, every: bool, with_state: bool, fault: str | None) -> None:
        """Begin the calls that may run, or, as no worker of ours does, all; where nothing was asked, one of its own."""

        def things(pause: Pause) -> list[Thing]:
            return [thing for thing in pause.things if every or thing.runs]

        def predict(pause: Pause) -> None:
            if with_state:
                pause.journal.clear()
            models.redeem(pause, things(pause))

        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.redeem(
                self.tenant,
                held.id,
                fence,
                intents_of(held, things(held.pause), fence),
                (),
                STATE if with_state else None,
                known=held.known,
            ),
            predict,
            lambda pause: models.check_permits(things(pause), self.now),
        )

    @precondition(lambda self: self.standing("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def checkpoint(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.checkpoint(self.tenant, held.id, fence, STATE, RAN, held.known),
            models.checkpoint,
        )

    @precondition(lambda self: self.standing("resuming"))
    @rule(place=PLACES, late=LATE, batch=BATCHES, fault=FAULT)
    def suspend_again(self, place: int, late: bool, batch: list[dict[str, Any]], fault: str | None) -> None:
        """The run pauses again: about calls in doubt where there are some, else about a new batch."""
        asked: list[Ask] = []

        async def call(held: Held, fence: Fence) -> Saved:
            asked[:] = doubts_of(held) or [ask_of(at, drawn) for at, drawn in enumerate(batch)]
            leased = (await self.store.read(self.tenant, held.id)).record
            assert leased is not None
            return await self.desk.suspend_again(leased, fence, tuple(asked), STATE, RAN, 1)

        def predict(pause: Pause) -> None:
            models.finish(pause, None)
            models.start(pause.run, [thing_of(ask, self.now) for ask in asked], self.now)

        held, _ = self.drive(place, late, fault, call, predict)
        run = held.pause.run
        if held.pause.status == "resumed" and held.pause.end is None and run.pauses[-1] not in self.pauses:
            following = self.wait(self.store.read(self.tenant, held.id)).record
            assert following is not None
            self.hold(str(following.following_id), run.pauses[-1])
            self.note_ready(str(following.following_id), run)

    @precondition(lambda self: self.standing("resuming"))
    @rule(place=PLACES, late=LATE, status=st.sampled_from(["completed", "degraded", "failed"]), fault=FAULT)
    def settle(self, place: int, late: bool, status: str, fault: str | None) -> None:
        end = RunEnd(status=RunStatus(status))
        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.settle(self.tenant, held.id, fence, end, RAN, held.known),
            lambda pause: models.finish(pause, status),
            settles=True,
        )

    @precondition(lambda self: self.standing("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def postpone(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.postpone(self.tenant, held.id, fence, "no such agent"),
            lambda pause: models.postpone(pause, self.now),
        )

    @precondition(lambda self: self.standing("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def release(self, place: int, late: bool, fault: str | None) -> None:
        def check(pause: Pause) -> None:
            if pause.journal:
                raise Refused("IllegalTransition")

        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.release(self.tenant, held.id, fence, "stopping"),
            lambda pause: models.release(pause, self.now),
            check,
        )

    @precondition(lambda self: self.standing("failed"))
    @rule(place=PLACES, fault=FAULT)
    def revive(self, place: int, fault: str | None) -> None:
        held = self.prefer(place, "failed")
        self.act(
            lambda: self.desk.revive(self.tenant, held.id, person("boss")),
            lambda: models.revive(held.pause, self.now),
            fault,
        )
        self.note_ready(held.id, held.pause.run)

    @precondition(lambda self: any(thing.doubt for held in self.held for thing in held.pause.things))
    @rule(place=PLACES, worker=st.sampled_from(WORKERS), fault=FAULT)
    def report(self, place: int, worker: str, fault: str | None) -> None:
        """A worker that had lost a run reports what a call of it came to."""
        doubted = [held for held in self.held if any(thing.doubt for thing in held.pause.things)]
        held = doubted[place % len(doubted)]
        key = next(thing.doubt[0] for thing in held.pause.things if thing.doubt)
        latest = next(one for one in reversed(self.held) if one.pause is held.pause.run.pauses[-1])
        self.act(
            lambda: self.desk.report(self.tenant, held.run_id, key, worker, RESULT),
            lambda: models.report(latest.pause, key, worker, self.now),
            fault,
        )
        self.note_ready(latest.id, latest.pause.run)

    # What must hold after every step

    @property
    def pauses(self) -> list[Pause]:
        return [held.pause for held in self.held]

    @invariant()
    def everything_is_where_it_must_be(self) -> None:
        held, records = self.wait(read_indexes(self.world.redis, self.tenant))
        found = {record.id: record for record in records}
        assert set(found) == {one.id for one in self.held}
        for one in self.held:
            assert describe(found[one.id]) == describe_model(one.pause)
            for place, item in enumerate(found[one.id].items):
                one.digests[place, one.pause.things[place].generation] = item.digest
        assert {name: held[name] for name in held if held[name]} == expect_indexes(records)
        self.wait(self.check_lists(found))

    async def check_lists(self, found: dict[str, SuspensionRecord]) -> None:
        ready = await self.world.redis.lrange(TenantKeys(self.tenant).ready, 0, -1)
        assert [one.split(b" ")[0].decode() for one in ready] == self.ready
        assert set(await self.agenda.due(self.tenant, self.now)) == {held.id for held in self.due}
        for run_id, run in self.known.items():
            latest = found[next(one.id for one in self.held if one.pause is run.pauses[-1])]
            trail = await self.runs.trail(self.tenant, run_id)
            assert [entry.type for entry in trail] == run.tale
            assert find_detour(trail, latest.status) is None
            if latest.state is not None:
                assert await self.runs.state(self.tenant, run_id, latest.state) == b'{"messages": []}'


def refusal_of(predict: Callable[[], object]) -> str | None:
    """Take a step in the model; return the name of the error that refuses it, or None."""
    try:
        predict()
    except Refused as refused:
        return refused.error
    return None


def intents_of(held: Held, things: list[Thing], fence: Fence) -> tuple[Intent, ...]:
    places = [place for place, thing in enumerate(held.pause.things) if any(thing is one for one in things)]
    return tuple(
        Intent(
            item_id=f"i{place + 1}" if place != models.UNASKED else None,
            call_id=f"call_{place}",
            index=place,
            tool="refund",
            idempotency_key=f"{held.id}:{place}",
            idempotent=False,
            attempt=fence.attempt,
            holder=fence.holder,
            begun_at_ms=0,
        )
        for place in places or [models.UNASKED]
    )


def doubts_of(held: Held) -> list[Ask]:
    """The questions about the calls of a run that were begun and of which nothing is known."""
    return [
        ask_in_doubt(
            ToolCall(call_id=f"call_{place}", index=place, name="refund", args={"amount": 1}),
            "d" * 64,
            Doubt(begun_at_ms=T0, holder=str(held.pause.holder), attempt=1, idempotency_key=f"{held.id}:{place}"),
        )
        for place in sorted(held.pause.journal)
    ]


def test_every_step_of_everybody_comes_to_what_the_model_says(clean_store_url: str) -> None:
    with asyncio.Runner() as loop:
        world = World(loop, connect(clean_store_url), connect(clean_store_url, blocking=True))
        try:
            run_state_machine_as_test(
                lambda: Machine(world),
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=STEPS,
                    deadline=None,
                    print_blob=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            loop.run(world.redis.aclose())
            loop.run(world.blocking.aclose())
