"""Calls on trial: one that is tried on the rules in force, and recorded ones that are read to be judged again."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.core.policy.counters.recalling import hide_amounts
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.external import describe_item, list_wanted
from sayso.core.policy.files.findings import Known
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.redaction import Redacted, redact
from sayso.core.transitions.deciding import find_item
from sayso.errors import InvalidInput, Unreadable
from sayso.features.whatif.explaining import Explanation, Trial, TrialCall, explain
from sayso.features.whatif.reevaluation import READ, RecordedCall, Rejudged, list_calls, list_suspended, rejudge
from sayso.runner.agents import AgentManifest
from service.core.operations.masking import find_secrets
from service.core.policy.evaluations import NO_LISTS, RULES, Evaluations, dump_tools, judge_blocking
from service.core.policy.sandbox import Overrun
from service.core.policy.sandbox_process import parse_job, read_tools
from service.core.store.connection.connecting import text
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.reading import open_record
from service.core.store.suspensions.saving import SuspensionLookups
from service.core.store.tenants import TenantStore
from service.core.wiring import Wiring


class Tried(NamedTuple):
    """The explanation of a call, with secrets masked in what the rules saw; `scrub` masks them in texts."""

    explanation: Explanation
    scrub: Callable[[str], str]


class PastCall(NamedTuple):
    """The call of a past item, with secrets masked."""

    record: SuspensionRecord
    item: Item
    definition: ToolDefinition | None
    args: JsonObject


async def read_past(wiring: Wiring, name: str) -> PastCall:
    """Return the call of `<suspension>/<item>`, or of the first item of a suspension; raises `NotFound`."""
    suspension_id, _, item_id = name.partition("/")
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    item = find_item(record, item_id) if item_id or not record.items else record.items[0]
    definition = await wiring.runs.definition(item.tool.definition)
    masked = find_secrets(item, definition.parameters if definition is not None else None)
    return PastCall(record, item, definition, masked.args)


async def try_call(
    wiring: Wiring, manifests: Mapping[str, AgentManifest], call: TrialCall, past: PastCall | None = None
) -> Tried:
    """Try a call on the rules in force. It has the facts about the run of the `past` call, and else those it states.

    A registered agent has its context, and no sub-agents. Unchanged masked arguments stand for those of the past call.
    """
    definition, policy = find_definition(manifests, call.agent, call.tool), wiring.rules.policy()
    if past is not None:
        event = describe_item(past.record, past.item, past.item.tool.args if call.args == past.args else call.args)
        event = event.model_copy(update={"tool_name": call.tool, "agent": call.agent})
        known, paths = past.definition, past.item.terms.secrets
    else:
        event = _make_event(call, manifests.get(call.agent))
        known, paths = definition, ()
    judge = partial(wiring.desk.evaluations.judge, caller=f"trial:{event.agent}")
    wanted = await judge(partial(list_wanted, policy, (event,)))
    event = event.model_copy(update={"readings": await wiring.desk.suspensions.recall(wanted)})
    secrets = redact(event.tool_args, known.parameters if known is not None else None, paths)
    explanation = await asyncio.to_thread(judge_blocking, partial(explain, policy, event, definition))
    trials = tuple(_mask(trial, event, secrets) for trial in explanation.trials)
    return Tried(explanation._replace(trials=trials), secrets.scrub)


def find_definition(manifests: Mapping[str, AgentManifest], agent: str, tool: str) -> ToolDefinition | None:
    """Return the tool of the agent, or without an agent the first tool of that name."""
    known = [manifests[agent]] if agent in manifests else [] if agent else manifests.values()
    return next((definition for manifest in known for definition in manifest.tools if definition.name == tool), None)


def _make_event(call: TrialCall, manifest: AgentManifest | None) -> PolicyEvent:
    event = call.as_event(now_ms())
    if manifest is None:
        return event
    context = {**call.context, **manifest.context}
    return event.model_copy(update={"subagent_name": call.subagent or "", "context": context})


def _mask(trial: Trial, event: PolicyEvent, secrets: Redacted) -> Trial:
    masked = {name: value for name, value in secrets.args.items() if trial.saw.get(name) == event.tool_args[name]}
    saw = {name: masked.get(name, value) for name, value in trial.saw.items()}
    return trial._replace(saw=saw, remembered=hide_amounts(trial.remembered, secrets.args))


MOST_EVENTS = 5_000  # the limit of trail events that are read of one run
_IDS = 500
_SUSPENDED = re.compile(rb'"suspension_id":"([^"]+)"')
_AT = re.compile(rb'"at_ms":(\d+)')
_HEAD_BYTES = 120  # the type stands before the data of an event
_TYPES = tuple(f'"type":"{kind}"'.encode() for kind in sorted(READ))
_SUSPENSION_EVENT = b'"type":"run_paused"'


class RawRun(NamedTuple):
    """The events of one run about calls, and its suspensions by id; deleted without `latest`, and maybe `is_cut`."""

    run_id: str
    latest: str
    trail: Sequence[bytes]
    records: dict[str, bytes]
    is_cut: bool = False

    @property
    def size(self) -> int:
        return sum(map(len, self.trail)) + sum(map(len, self.records.values()))


class RecordedRuns:
    """Reads of the runs of one tenant that may have calls in a range of time."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._sealer = store.redis, store.keys, store.sealer

    async def count(self, from_ms: int, to_ms: int) -> int:
        """Return about how many runs `list_ids` yields: those that began in the range, and deleted ones."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for owner in await self._redis.smembers(self._keys.owners):
                pipe.zcount(self._keys.runs_of(text(owner)), from_ms, f"({to_ms}")
            pipe.zcount(self._keys.trails, from_ms, "+inf")
            return sum(await pipe.execute())

    async def list_ids(self, from_ms: int, to_ms: int) -> AsyncIterator[list[str]]:
        """Yield pages of ids of runs with events in the range, deleted ones last.

        A run may have begun long before the range, so the last event of every earlier run is compared.
        """
        owners: Any = await self._redis.smembers(self._keys.owners)
        for owner in sorted(map(text, owners)):
            async for page in self._page(self._keys.runs_of(owner), f"({to_ms}", "-inf"):
                begun = [run_id for run_id, score in page if score >= from_ms]
                earlier = [run_id for run_id, score in page if score < from_ms]
                yield begun + await self._keep_lasting(earlier, from_ms)
        async for page in self._page(self._keys.trails, "+inf", str(from_ms)):
            yield [run_id for run_id, _ in page]

    async def read(self, run_ids: Sequence[str]) -> list[RawRun]:
        """Return the stored bytes of these runs, with records in clear, in two round trips."""
        keys = self._keys
        latest: list[Any] = await self._redis.mget([keys.run(run_id) for run_id in run_ids])
        async with self._redis.pipeline(transaction=False) as pipe:
            for run_id in run_ids:
                pipe.lrange(keys.trail(run_id), 0, MOST_EVENTS)
            trails = await pipe.execute()
        runs = [_filter(run_id, last, raw) for run_id, last, raw in zip(run_ids, latest, trails, strict=True)]
        wanted = [(run, name) for run in runs for name in _list_suspensions(run)]
        records: list[Any] = await self._redis.mget([keys.suspension(name) for _, name in wanted]) if wanted else []
        for (run, name), raw in zip(wanted, records, strict=True):
            if raw is not None:
                run.records[name] = self._open(name, raw)
        return runs

    def _open(self, suspension_id: str, raw: bytes) -> bytes:
        try:
            return open_record(raw, self._sealer, suspension_id)
        except Unreadable:
            return raw  # counted as such by who reads it

    async def _page(self, index: str, newest: str, oldest: str) -> AsyncIterator[list[tuple[str, float]]]:
        """Yield the entries between two scores, the newest first, so that new and deleted runs shift no page much."""
        skip = 0
        while True:
            entries: Any = await self._redis.zrevrangebyscore(
                index, newest, oldest, start=skip, num=_IDS, withscores=True
            )
            if not entries:
                return
            yield [(text(name), score) for name, score in entries]
            skip += _IDS

    async def _keep_lasting(self, run_ids: list[str], from_ms: int) -> list[str]:
        if not run_ids:
            return []
        async with self._redis.pipeline(transaction=False) as pipe:
            for run_id in run_ids:
                pipe.lindex(self._keys.trail(run_id), -1)
            last = await pipe.execute()
        return [run_id for run_id, raw in zip(run_ids, last, strict=True) if raw and _read_time(raw) >= from_ms]


def _filter(run_id: str, latest: bytes | None, trail: list[bytes]) -> RawRun:
    kept = [entry for entry in trail[:MOST_EVENTS] if any(kind in entry[:_HEAD_BYTES] for kind in _TYPES)]
    return RawRun(run_id, text(latest or b""), kept, {}, len(trail) > MOST_EVENTS)


def _list_suspensions(run: RawRun) -> list[str]:
    if not run.latest:
        return []
    named = (_SUSPENDED.search(entry) for entry in run.trail if _SUSPENSION_EVENT in entry[:_HEAD_BYTES])
    return list(dict.fromkeys((run.latest, *(text(match[1]) for match in named if match is not None))))


def _read_time(entry: bytes) -> int:
    """Return the time of an event, ms; one that cannot be read counts as late, so that its run is not skipped."""
    match = _AT.search(entry[:_HEAD_BYTES])
    return int(match[1]) if match is not None else 2**53


MOST_CALLS = 1_000
MOST_RUNS = 1_000
MOST_BYTES = 8 * 1024 * 1024  # the limit of all arguments together: they are sent to the process that judges
_AT_ONCE = 50


async def read_recorded(runs: Runs, suspensions: SuspensionLookups, most: int = MOST_CALLS) -> list[RecordedCall]:
    """Return up to `most` recorded calls of the newest runs, the latest call of each run first."""
    latest = await runs.latest(MOST_RUNS)
    recorded: list[RecordedCall] = []
    room = MOST_BYTES
    for begin in range(0, len(latest), _AT_ONCE):
        records = await suspensions.read_many(latest[begin : begin + _AT_ONCE])
        pages = await asyncio.gather(*(_read_run(runs, suspensions, record) for record in records))
        for call in (call for calls in pages for call in calls):
            room -= len(json.dumps(call.event.tool_args))
            if len(recorded) == most or room < 0:
                return recorded
            recorded.append(call)
    return recorded


async def _read_run(runs: Runs, suspensions: SuspensionLookups, record: SuspensionRecord) -> list[RecordedCall]:
    trail = await runs.trail(record.run.id, limit=5_000)
    records = {record.id: record}
    earlier = [suspension_id for suspension_id in list_suspended(trail) if suspension_id not in records]
    records |= {other.id: other for other in await suspensions.read_many(earlier)}
    return list_calls(record.run, trail, records)


async def judge_again(
    evaluations: Evaluations,
    text: str,
    file: str,
    calls: Sequence[RecordedCall],
    known: Known,
    *,
    lists: Mapping[str, str] = NO_LISTS,
    caller: str,
) -> list[Rejudged | None]:
    """Return what valid rules would do with each recorded call; None where a fact is missing."""
    job: JsonObject = {
        "kind": "rejudge",
        "text": text,
        "file": file,
        "lists": dict(lists),
        "calls": [call.model_dump(mode="json") for call in calls],
        "tools": dump_tools(known),
    }
    try:
        answer = await evaluations.run(RULES, job, caller)
    except Overrun as error:
        why = error.message.partition(". ")[0]
        raise InvalidInput(f"The recorded calls could not be judged again. {why}. Simplify the rules.") from error
    return [Rejudged.model_validate(row) if row is not None else None for row in answer["judged"]]


def rejudge_calls(job: dict[str, Any]) -> JsonObject:
    """Do the job of `judge_again`, in the sandbox's process."""
    policy, tools = parse_job(job), read_tools(job)
    judged = rejudge(policy, [RecordedCall.model_validate(call) for call in job["calls"]], tools)
    return {"judged": [judgement.model_dump(mode="json") if judgement is not None else None for judgement in judged]}
