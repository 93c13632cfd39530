"""Steps of clients and reviewers, in the desk and in the model."""

from collections.abc import Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunRef
from sayso.core.transitions.deciding import suspend
from service.core.desk.changes import draft_suspension
from service.core.store.suspensions.commits import Idempotency
from service.core.store.suspensions.saving import Saved
from tests.proofs.base_machine import BaseMachine
from tests.proofs.model import deciding, timing
from tests.proofs.model.records import ItemModel, Refused, RunModel
from tests.proofs.strategies import (
    BATCHES,
    FAULT,
    GUARDED_AMOUNT,
    MAX_RUNS,
    MIN_EVENTS_TO_CANCEL,
    PLACES,
    REVIEWERS,
    STATE,
    build_draft,
    build_item,
)
from tests.sayso.samples import person


class RequestSteps(BaseMachine):
    """The rules of clients and reviewers."""

    def begin(self, drafts: tuple[ItemDraft, ...], key: str, fault: str | None) -> None:
        run, run_id = RunModel("bot", freezes=self.freeze_models), f"run_{len(self.run_models)}"
        self.run_models[run_id] = run
        ref = RunRef(id=run_id, agent="a", owner="bot", thread_id="t")

        def call() -> Coroutine[Any, Any, Saved]:
            if not drafts:
                return self.desk.start(ref, STATE, key=key, request="the same")
            record = draft_suspension(self.tenant, ref, state=None)
            seen = Idempotency("bot", key, "the same", record.id)
            return self.store.create(record.id, lambda now_ms: suspend(record, drafts, now_ms), seen)

        saved = self.act(
            call,
            lambda: deciding.start(run, [build_item(draft, self.now) for draft in drafts], self.now),
            fault,
            keyed=True,
        )
        assert saved is not None
        self.track(saved.record.id, run.suspensions[0])
        self.note_ready(saved.record.id, run)

    @precondition(lambda self: len(self.run_models) < MAX_RUNS)
    @rule(fault=FAULT)
    def start(self, fault: str | None) -> None:
        self.begin((), f"start-{len(self.run_models)}", fault)

    @precondition(lambda self: len(self.run_models) < MAX_RUNS)
    @rule(batch=BATCHES, fault=FAULT)
    def ask(self, batch: list[dict[str, Any]], fault: str | None) -> None:
        self.begin(
            tuple(build_draft(place, drawn) for place, drawn in enumerate(batch)), f"ask-{len(self.run_models)}", fault
        )

    @precondition(lambda self: any(len(run.events) > MIN_EVENTS_TO_CANCEL for run in self.run_models.values()))
    @rule(place=PLACES, fault=FAULT)
    def cancel(self, place: int, fault: str | None) -> None:
        tracked = self.tracked[place % len(self.tracked)]
        run = tracked.suspension.run
        latest = next(one for one in reversed(self.tracked) if one.suspension is run.suspensions[-1])

        def predict() -> None:
            if latest.suspension.end not in (None, "cancelled"):
                raise Refused("Conflict")
            deciding.cancel(latest.suspension)

        self.act(
            lambda: self.desk.cancel(tracked.run_id, person("bot"), key=f"cancel-{tracked.run_id}"),
            predict,
            fault,
            keyed=True,
        )

    @precondition(lambda self: len(self.requests) > MAX_RUNS)
    @rule(place=PLACES)
    def repeat(self, place: int) -> None:
        """Repeat an earlier request: the result is the same, and nothing changes."""
        saved, error = self.attempt(self.requests[place % len(self.requests)])
        assert (error, saved and saved.repeated) == (None, True)

    @property
    def open_items(self) -> list[ItemModel]:
        return [item for tracked in self.with_status("pending") for item in tracked.suspension.open]

    @precondition(lambda self: self.with_status("pending") or len(self.tracked) > MAX_RUNS)
    @rule(
        place=PLACES,
        index=st.integers(0, 1),
        by=st.sampled_from(REVIEWERS),
        action=st.sampled_from(["approve", "approve", "edit", "edit", "deny", "value"]),
        guarded=st.sampled_from([False, False, True]),
        stale=st.sampled_from([False, False, False, True]),
        fault=FAULT,
    )
    def decide(
        self, place: int, index: int, by: str, action: str, guarded: bool, stale: bool, fault: str | None
    ) -> None:
        tracked = self.pick(place, "pending")
        if not tracked.suspension.items:
            return
        index %= len(tracked.suspension.items)
        item = tracked.suspension.items[index]
        if action in ("approve", "edit") and item.kind != "approval":
            action = "value"
        if action == "value" and item.kind == "approval":
            action = "approve"
        generation = max(0, item.generation - stale)
        amount = GUARDED_AMOUNT if guarded else 2
        values = {"doubt": {"choice": "skip"}, "input": amount}
        request = DecisionRequest.model_validate(
            {
                "digest": tracked.digests.get((index, generation), "0" * 64),
                "action": "approve" if action == "edit" else action,
                **({"args": {"amount": amount}} if action == "edit" else {}),
                **({"value": values[item.kind]} if action == "value" else {}),
            }
        )
        key = f"{tracked.id} {index} {by} {action} {amount} {generation} {item.taken}"
        late = (
            item.open and tracked.suspension.status == "pending" and timing.is_late(tracked.suspension, item, self.now)
        )

        changes = guarded and (action == "edit" or (action, item.kind) == ("value", "input"))
        again = changes and item.open and generation == item.generation and not item.asked_again

        def predict() -> None:
            try:
                if again:
                    deciding.ask_again(tracked.suspension, item, by, generation, self.now)
                else:
                    args = f"edit {amount}" if action == "edit" else ""
                    deciding.decide(tracked.suspension, item, by, request.action, args, generation, self.now)
            except Refused as refused:
                if refused.error == "DeadlinePassed":
                    timing.tick(tracked.suspension, self.now)
                raise

        if not any(key in str(one.__defaults__) for one in self.requests):  # the same key again is `repeat`

            def call(_key: str = key) -> Coroutine[Any, Any, Saved]:
                return self.desk.decide(tracked.id, f"i{index + 1}", request, person(by), key)

            self.act(call, predict, None if late else fault, keyed=True)
        self.note_ready(tracked.id, tracked.suspension.run)

    @precondition(lambda self: any(item.decisions or item.undoable for item in self.open_items))
    @rule(place=PLACES, index=st.integers(0, 1), by=st.sampled_from(REVIEWERS), fault=FAULT)
    def retract(self, place: int, index: int, by: str, fault: str | None) -> None:
        tracked = self.pick(place, "pending")
        if not tracked.suspension.items:
            return
        index %= len(tracked.suspension.items)
        item = tracked.suspension.items[index]

        def predict() -> None:
            try:
                deciding.retract(tracked.suspension, item, by, self.now)
            except Refused as refused:
                if refused.error == "DeadlinePassed":
                    timing.tick(tracked.suspension, self.now)
                raise

        late = (
            item.open and tracked.suspension.status == "pending" and timing.is_late(tracked.suspension, item, self.now)
        )
        self.act(lambda: self.desk.retract(tracked.id, f"i{index + 1}", person(by)), predict, None if late else fault)
        self.note_ready(tracked.id, tracked.suspension.run)

    @precondition(lambda self: any(item.decisions or item.undoable for item in self.open_items))
    @rule(place=PLACES, by=st.sampled_from(REVIEWERS), fault=FAULT)
    def void_decisions(self, place: int, by: str, fault: str | None) -> None:
        tracked = self.pick(place, "pending")
        self.act(
            lambda: self.desk.void_decisions(tracked.id, (by,)),
            lambda: deciding.void(tracked.suspension, by),
            fault,
        )

    @precondition(
        lambda self: any(item.unseen for tracked in self.with_status("pending") for item in tracked.suspension.open)
    )
    @rule(place=PLACES, index=st.integers(0, 1), by=st.sampled_from(REVIEWERS), fault=FAULT)
    def see(self, place: int, index: int, by: str, fault: str | None) -> None:
        tracked = self.pick(place, "pending")
        if not tracked.suspension.items:
            return
        index %= len(tracked.suspension.items)
        self.act(
            lambda: self.desk.see(tracked.id, f"i{index + 1}", person(by)),
            lambda: deciding.see(tracked.suspension, tracked.suspension.items[index], by, self.now),
            fault,
        )

    @precondition(
        lambda self: any(
            item.extend_until for tracked in self.with_status("pending") for item in tracked.suspension.open
        )
    )
    @rule(place=PLACES, by=st.sampled_from(REVIEWERS), more_s=st.sampled_from([1, 4, 30]), fault=FAULT)
    def extend(self, place: int, by: str, more_s: int, fault: str | None) -> None:
        tracked = self.pick(place, "pending")
        if not tracked.suspension.items:
            return
        item = tracked.suspension.items[0]
        until = item.deadline + more_s * 1000
        self.act(
            lambda: self.desk.extend(tracked.id, "i1", until, person(by)),
            lambda: deciding.extend(tracked.suspension, item, by, until, self.now),
            fault,
        )
