"""The base of the state machine: takes every step in the desk and in the model, and compares them."""

from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import SaysoError
from service.core.desk.desk import Desk
from service.core.store.keys import TenantKeys
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.saving import Saved
from service.core.store.suspensions.schedule import Schedule
from service.core.store.tenants import TenantStore
from service.features.registry import HOOKS
from tests.proofs.comparison import describe, describe_model
from tests.proofs.faulty_stores import FaultySuspensions
from tests.proofs.indexes import expect_indexes, find_trail_error, read_indexes
from tests.proofs.model.freezes import FreezeModel
from tests.proofs.model.records import Refused, RunModel, SuspensionModel
from tests.proofs.strategies import POLICY, REFUND, Environment, Tracked
from tests.sayso.samples import T0

tenants = count()

T = TypeVar("T")


class BaseMachine(RuleBasedStateMachine):
    """The shared state of all rules; every example is a tenant of its own."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self.environment = environment
        self.tenant = f"t{next(tenants)}"
        store = TenantStore(environment.connections, self.tenant, HOOKS)
        self.store = FaultySuspensions(store, T0)
        self.runs = Runs(store)
        self.desk = Desk(self.store, self.runs, lambda: POLICY, self.read_freezes)
        self.schedule = Schedule(store)
        self.tracked: list[Tracked] = []
        self.run_models: dict[str, RunModel] = {}
        self.ready: list[str] = []
        self.freezes: list[Freeze] = []
        self.freeze_models: list[FreezeModel] = []
        self.wait(self.runs.save_definitions([REFUND]))
        self.requests: list[Callable[[], Coroutine[Any, Any, Saved]]] = []

    async def read_freezes(self, _fresh: bool) -> tuple[Freeze, ...]:
        return tuple(self.freezes)

    @property
    def now(self) -> int:
        return self.store.now_ms

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.environment.loop.run(coroutine)

    def with_status(self, *statuses: str) -> list[Tracked]:
        return [tracked for tracked in self.tracked if tracked.suspension.status in statuses]

    def pick(self, place: int, *statuses: str) -> Tracked:
        """Return a suspension, preferably one with this status."""
        preferred = self.with_status(*statuses) if place else []
        return (preferred or self.tracked)[place % len(preferred or self.tracked)]

    def act(
        self,
        call: Callable[[], Coroutine[Any, Any, Saved]],
        predict: Callable[[], object],
        fault: str | None = None,
        *,
        keyed: bool = False,
    ) -> Saved | None:
        """Take a step in the desk and in the model, and compare the results.

        After a lost reply, a request with a key is repeated; a worker's step is not.
        """
        self.store.fault, self.store.ran = fault, False
        saved, error = self.attempt(call)
        self.store.fault = None
        if error == "Unavailable":
            if self.store.ran:
                predict()
                if keyed:
                    saved, error = self.attempt(call)
                    assert (error, saved and saved.repeated) == (None, True), (
                        "a repeated request returns the first result"
                    )
                    self.requests.append(call)
                return saved
            if not keyed:
                return None
            saved, error = self.attempt(call)
        assert error == predict_error(predict)
        if keyed and error is None:
            self.requests.append(call)
        return saved

    def attempt(self, call: Callable[[], Coroutine[Any, Any, Saved]]) -> tuple[Saved | None, str | None]:
        try:
            return self.wait(call()), None
        except SaysoError as error:
            return None, type(error).__name__

    def track(self, suspension_id: str, suspension: SuspensionModel) -> Tracked:
        tracked = Tracked(suspension_id, self.find_run_id(suspension), suspension)
        self.tracked.append(tracked)
        return tracked

    def find_run_id(self, suspension: SuspensionModel) -> str:
        return next(run_id for run_id, run in self.run_models.items() if run is suspension.run)

    def note_ready(self, suspension_id: str, run: RunModel) -> None:
        self.ready += [suspension_id] * run.ready
        run.ready = 0

    @property
    def due(self) -> list[Tracked]:
        return [one for one in self.tracked if one.suspension.due_at is not None and one.suspension.due_at <= self.now]

    @property
    def suspensions(self) -> list[SuspensionModel]:
        return [tracked.suspension for tracked in self.tracked]

    @invariant()
    def records_indexes_and_trails_match(self) -> None:
        indexes, records = self.wait(read_indexes(self.environment.redis, self.tenant))
        found = {record.id: record for record in records}
        assert set(found) == {one.id for one in self.tracked}
        for one in self.tracked:
            assert describe(found[one.id]) == describe_model(one.suspension)
            for place, item in enumerate(found[one.id].items):
                one.digests[place, one.suspension.items[place].generation] = item.digest
        assert {name: indexes[name] for name in indexes if indexes[name]} == expect_indexes(records)
        self.wait(self.check_lists(found))

    async def check_lists(self, found: dict[str, SuspensionRecord]) -> None:
        ready: list[bytes] = await self.environment.redis.lrange(TenantKeys(self.tenant).ready, 0, -1)  # type: ignore[assignment]
        assert [one.split(b" ")[0].decode() for one in ready] == self.ready
        assert set(await self.schedule.due(self.now)) == {tracked.id for tracked in self.due}
        for run_id, run in self.run_models.items():
            latest = found[next(one.id for one in self.tracked if one.suspension is run.suspensions[-1])]
            trail = await self.runs.trail(run_id)
            assert [entry.type for entry in trail] == run.events
            assert find_trail_error(trail, latest.status) is None
            if latest.state is not None:
                assert await self.runs.state(run_id, latest.state) == b'{"messages": []}'


def predict_error(predict: Callable[[], object]) -> str | None:
    """Take a step in the model; return the name of the error, or None."""
    try:
        predict()
    except Refused as refused:
        return refused.error
    return None
