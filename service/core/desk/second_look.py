"""Second looks: find the call of one, and record what another person thinks of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.second_look import Opinion, Seen, read_seen, take_second_look
from sayso.errors import AlreadyDecided, IdempotencyConflict, NotFound
from service.core.desk.changes import Changes
from service.core.store.keys import name_call
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.commits import Idempotency

Waits = Callable[[str, int], Awaitable[bool]]  # whether the call of this trail event waits for a second look


@dataclass(frozen=True)
class SeenCall:
    """The call of a second look: its run's latest suspension, its arguments without secrets, and its item, if any."""

    record: SuspensionRecord
    seen: Seen
    args: JsonObject
    at_ms: int
    item: tuple[str, str] | None


@dataclass(frozen=True)
class SecondLooking:
    """Operations on calls that were drawn for a second look."""

    changes: Changes
    runs: Runs

    async def find_seen_call(self, run_id: str, seq: int) -> SeenCall:
        """Return the call that this trail event allowed or decided; raises `NotFound`."""
        entry = next(iter(await self.runs.trail(run_id, after=seq - 1, limit=1)), None)
        if entry is None or entry.type not in (EventType.POLICY_DECISION, EventType.DECISION_RECORDED):
            raise NotFound(f"Run {run_id!r} has no call with the event {seq}. List the calls that wait.")
        run = await self.runs.read(run_id)
        record = (await self.changes.suspensions.read(run.suspension_id)).record
        args = entry.data.get("args")
        shown: JsonObject = args if isinstance(args, dict) else {}
        if entry.type == EventType.POLICY_DECISION:
            return SeenCall(record, read_seen(entry), shown, entry.at_ms, None)
        place = (str(entry.data["suspension_id"]), str(entry.data["item_id"]))
        item = find_item((await self.changes.suspensions.read(place[0])).record, place[1])
        people = tuple(decision.by.id for decision in item.decisions if decision.by.kind is ActorKind.HUMAN)
        named = TrailEntry(**vars(entry) | {"data": entry.data | {"tool_name": item.tool.name}})
        return SeenCall(record, read_seen(named, people), shown, entry.at_ms, place)

    async def take_second_look(self, run_id: str, seq: int, opinion: Opinion, by: Actor, waits: Waits) -> SeenCall:
        """Record whether a person agrees with a call that waits for a second look. The same again changes nothing.

        Raises `NotFound` for a call that does not wait, `AlreadyDecided` for one that somebody took, and as the
        transition does.
        """
        call, waiting = await self.find_seen_call(run_id, seq), await waits(run_id, seq)
        fingerprint = digest_json([by.id, opinion.agrees, opinion.reason])
        once = Idempotency("second-look", name_call(run_id, seq), fingerprint, call.record.id)

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            if not waiting:
                raise NotFound("This call waits for no second look: it was not drawn, or somebody took it.")
            if record.following_id is not None:
                return Change(record)  # the run's trail goes on in a later suspension
            return take_second_look(record, call.seen, opinion, by, now_ms)

        suspension_id = call.record.id
        while True:
            try:
                saved = await self.changes.change(suspension_id, transition, once)
            except IdempotencyConflict as error:
                raise AlreadyDecided("Somebody else took this second look first. Nothing was changed.") from error
            if saved.ref is not None:
                return call
            suspension_id = (await self.runs.read(run_id)).suspension_id
