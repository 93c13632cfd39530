"""Steps of clients and reviewers, in the desk and in the model."""

from collections.abc import Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sayso.records.decisions import DecisionRequest
from sayso.records.items import ItemDraft
from sayso.records.suspensions import RunRef
from sayso.transitions.deciding import suspend
from service.desk.drafts import draft_suspension
from service.store.suspensions.commits import Idempotency
from service.store.suspensions.saving import Saved
from tests.proofs import models
from tests.proofs.draws import BATCHES, FAULT, MANY, MOST_RUNS, MUCH, PLACES, REVIEWERS, STATE, ask_of, thing_of
from tests.proofs.machines import Bench
from tests.proofs.models import Refused, Run
from tests.sayso.samples import person


class Speakers(Bench):
    """The rules of clients and reviewers."""

    def begin(self, drafts: tuple[ItemDraft, ...], key: str, fault: str | None) -> None:
        run, run_id = Run("bot", frozen=self.frozen), f"run_{len(self.known)}"
        self.known[run_id] = run
        ref = RunRef(id=run_id, agent="a", owner="bot", thread_id="t")

        def call() -> Coroutine[Any, Any, Saved]:
            if not drafts:
                return self.desk.start(ref, STATE, key=key, request="the same")
            draft = draft_suspension(self.tenant, ref, state=None)
            seen = Idempotency("bot", key, "the same", draft.id)
            return self.store.create(draft.id, lambda now_ms: suspend(draft, drafts, now_ms), seen)

        saved = self.act(
            call, lambda: models.start(run, [thing_of(ask, self.now) for ask in drafts], self.now), fault, keyed=True
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
            lambda: self.desk.cancel(held.run_id, person("bot"), key=f"cancel-{held.run_id}"),
            predict,
            fault,
            keyed=True,
        )

    @precondition(lambda self: len(self.said) > MOST_RUNS)
    @rule(place=PLACES)
    def repeat(self, place: int) -> None:
        """Repeat an earlier request: the result is the same, and nothing changes."""
        saved, error = self.attempt(self.said[place % len(self.said)])
        assert (error, saved and saved.repeated) == (None, True)

    # Decisions

    @precondition(lambda self: self.revocations("pending") or len(self.held) > MOST_RUNS)
    @rule(
        place=PLACES,
        item=st.integers(0, 1),
        by=st.sampled_from(REVIEWERS),
        action=st.sampled_from(["approve", "approve", "edit", "edit", "deny", "value"]),
        much=st.sampled_from([False, False, True]),
        stale=st.sampled_from([False, False, False, True]),
        fault=FAULT,
    )
    def decide(self, place: int, item: int, by: str, action: str, much: bool, stale: bool, fault: str | None) -> None:
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
        amount = MUCH if much else 2
        values = {"doubt": {"choice": "skip"}, "input": amount}
        request = DecisionRequest.model_validate(
            {
                "digest": held.digests.get((item, generation), "0" * 64),
                "action": "approve" if action == "edit" else action,
                **({"args": {"amount": amount}} if action == "edit" else {}),
                **({"value": values[thing.kind]} if action == "value" else {}),
            }
        )
        key = f"{held.id} {item} {by} {action} {amount} {generation}"
        late = thing.open and held.pause.status == "pending" and models.is_late(held.pause, thing, self.now)

        changes = much and (action == "edit" or (action, thing.kind) == ("value", "input"))
        again = changes and thing.open and generation == thing.generation and not thing.strict

        def predict() -> None:
            try:
                if again:
                    models.ask_again(held.pause, thing, by, generation, self.now)
                else:
                    args = f"edit {amount}" if action == "edit" else ""
                    models.decide(held.pause, thing, by, request.action, args, generation, self.now)
            except Refused as refused:
                if refused.error == "DeadlinePassed":
                    models.look(held.pause, self.now)
                raise

        if not any(key in str(one.__defaults__) for one in self.said):  # the same key again is `repeat`

            def call(_key: str = key) -> Coroutine[Any, Any, Saved]:
                return self.desk.decide(held.id, f"i{item + 1}", request, person(by), key)

            self.act(call, predict, None if late else fault, keyed=True)
        self.note_ready(held.id, held.pause.run)

    @precondition(lambda self: any(thing.unseen for held in self.revocations("pending") for thing in held.pause.open))
    @rule(place=PLACES, item=st.integers(0, 1), by=st.sampled_from(REVIEWERS), fault=FAULT)
    def see(self, place: int, item: int, by: str, fault: str | None) -> None:
        held = self.prefer(place, "pending")
        if not held.pause.things:
            return
        item %= len(held.pause.things)
        self.act(
            lambda: self.desk.see(held.id, f"i{item + 1}", person(by)),
            lambda: models.see(held.pause, held.pause.things[item], by, self.now),
            fault,
        )

    @precondition(
        lambda self: any(thing.extend_until for held in self.revocations("pending") for thing in held.pause.open)
    )
    @rule(place=PLACES, by=st.sampled_from(REVIEWERS), more_s=st.sampled_from([1, 4, 30]), fault=FAULT)
    def extend(self, place: int, by: str, more_s: int, fault: str | None) -> None:
        held = self.prefer(place, "pending")
        if not held.pause.things:
            return
        thing = held.pause.things[0]
        until = thing.deadline + more_s * 1000
        self.act(
            lambda: self.desk.extend(held.id, "i1", until, person(by)),
            lambda: models.extend(held.pause, thing, by, until, self.now),
            fault,
        )
