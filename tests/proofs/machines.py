"""The base of the state machine: takes every step in the desk and in the model, and compares them."""

from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from sayso.errors import SaysoError
from sayso.records.freezes import Freeze
from sayso.records.suspensions import SuspensionRecord
from service.desk.desk import Desk
from service.store.keys import TenantKeys
from service.store.runs.runs import Runs
from service.store.suspensions.saving import Saved
from service.store.suspensions.schedule import Schedule
from service.store.tenants import TenantStore
from tests.proofs.draws import POLICY, REFUND, Held, World, describe, describe_model
from tests.proofs.indexes import expect_indexes, find_detour, read_indexes
from tests.proofs.models import Pause, Refused, Run
from tests.proofs.shaky import ShakySuspensions
from tests.proofs.spans import Span
from tests.sayso.samples import T0

tenants = count()

T = TypeVar("T")


class Bench(RuleBasedStateMachine):
    """The shared state of all rules; every example is a tenant of its own."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.tenant = f"t{next(tenants)}"
        store = TenantStore(world.connections, self.tenant)
        self.store = ShakySuspensions(store, T0)
        self.runs = Runs(store)
        self.desk = Desk(self.store, self.runs, lambda: POLICY, self.freezes_known)
        self.schedule = Schedule(store)
        self.held: list[Held] = []
        self.known: dict[str, Run] = {}
        self.ready: list[str] = []
        self.freezes: list[Freeze] = []
        self.frozen: list[Span] = []
        self.wait(self.runs.save_definitions([REFUND]))
        self.said: list[Callable[[], Coroutine[Any, Any, Saved]]] = []

    async def freezes_known(self, _fresh: bool) -> tuple[Freeze, ...]:
        return tuple(self.freezes)

    @property
    def now(self) -> int:
        return self.store.now_ms

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.world.loop.run(coroutine)

    def revocations(self, *statuses: str) -> list[Held]:
        return [held for held in self.held if held.pause.status in statuses]

    def prefer(self, place: int, *statuses: str) -> Held:
        """Return a suspension, preferably one with this status."""
        preferred = self.revocations(*statuses) if place else []
        return (preferred or self.held)[place % len(preferred or self.held)]

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

    @property
    def due(self) -> list[Held]:
        return [held for held in self.held if held.pause.look is not None and held.pause.look <= self.now]

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
        ready: list[bytes] = await self.world.redis.lrange(TenantKeys(self.tenant).ready, 0, -1)  # type: ignore[assignment]
        assert [one.split(b" ")[0].decode() for one in ready] == self.ready
        assert set(await self.schedule.due(self.now)) == {held.id for held in self.due}
        for run_id, run in self.known.items():
            latest = found[next(one.id for one in self.held if one.pause is run.pauses[-1])]
            trail = await self.runs.trail(run_id)
            assert [entry.type for entry in trail] == run.tale
            assert find_detour(trail, latest.status) is None
            if latest.state is not None:
                assert await self.runs.state(run_id, latest.state) == b'{"messages": []}'


def refusal_of(predict: Callable[[], object]) -> str | None:
    """Take a step in the model; return the name of the error, or None."""
    try:
        predict()
    except Refused as refused:
        return refused.error
    return None
