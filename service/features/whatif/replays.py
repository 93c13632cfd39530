"""Replays: all recorded calls of a range judged again by other rules, page by page in processes of their own."""

import asyncio
import base64
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import structlog
from pydantic import TypeAdapter, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS, iso_utc, new_id
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.policy.functions.lists import pick_file
from sayso.core.records.base import Immutable
from sayso.core.records.events import TrailEntry
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.language import mark
from sayso.errors import InvalidInput, SaysoError, TooManyRequests, Unreadable
from sayso.features.whatif.candidates import list_judged_beside
from sayso.features.whatif.matrix import AmountFinder, Tally, tally
from sayso.features.whatif.reevaluation import ERASED, RecordedCall, Rejudged, is_judged, list_calls, rejudge
from sayso.wire.rulebook import ReplayStatus
from service.core.operations.known_names import find_known
from service.core.policy.evaluations import NO_LISTS, dump_tools
from service.core.policy.sandbox import Overrun, Sandbox
from service.core.store.suspensions.reading import unpack_record
from service.core.wiring import Wiring
from service.features.whatif.store import Replay, ReplayStore
from service.features.whatif.trials import MOST_EVENTS, RawRun, RecordedRuns, rejudge_calls

DELETED = mark("The run was deleted, and its facts with it.")
UNREADABLE = mark("The run's record cannot be read.")

_ENTRY = TypeAdapter(TrailEntry)
_TOOLS = TypeAdapter(dict[str, list[ToolDefinition]])
_CACHED = 4


class ReplayRules(Immutable):
    """The rules of a replay and its range, ms; the same for every page.

    `base` are rules to compare with, else what was done counts. `live` are the rules in force as JSON, which may name
    amounts, and `tools` those of the registered agents as JSON. `lists` are the files of lists by name, as JSON. `path`
    is the argument to sum. With `shadow`, the version of a candidate, what it said in shadow counts.
    """

    text: str
    file: str
    base: str | None = None
    lists: str = "{}"
    live: str
    tools: str
    path: str | None = None
    from_ms: int
    to_ms: int
    shadow: str = ""


def write_job(rules: ReplayRules, runs: Sequence[RawRun]) -> JsonObject:
    """Return the job for a page of runs."""
    return {
        "kind": "replay",
        **rules.model_dump(),
        "runs": [
            {
                "id": run.run_id,
                "latest": run.latest,
                "trail": [event.decode(errors="replace") for event in run.trail],
                "records": {name: base64.b64encode(raw).decode() for name, raw in run.records.items()},
            }
            for run in runs
        ],
    }


def replay_page(job: dict[str, Any]) -> JsonObject:
    """Judge the calls of the runs again; return their `Tally` as JSON."""
    _give_way()
    rules = ReplayRules.model_validate({name: job[name] for name in ReplayRules.model_fields})
    policy = _parse(rules.text, rules.file, rules.lists)
    base = _parse(rules.base, rules.file, rules.lists) if rules.base is not None else None
    tools, lost = _read_tools(rules.tools), Counter[str]()
    recorded = [call for run in job["runs"] for call in _read_calls(run, lost, rules)]
    calls = [call for call in recorded if rules.from_ms <= call.at_ms < rules.to_ms]
    before = list(rejudge(base, calls, tools)) if base is not None else None
    judged: Iterable[Rejudged | None] = rejudge(policy, calls, tools)
    if rules.shadow:
        calls, judged = list_judged_beside(calls, rules.shadow)
    result = tally(calls, judged, _find_amounts(rules), before)
    result.missing.update(lost)
    return result.model_dump(mode="json")


JOBS = {"rejudge": rejudge_calls, "replay": replay_page}  # the jobs of the sandbox's processes


def _read_calls(run: dict[str, Any], lost: Counter[str], rules: ReplayRules) -> list[RecordedCall]:
    """Return the calls of a run; those of a deleted or unreadable one are counted in `lost`, by whether erased."""
    trail = list(_read_trail(run["trail"]))
    records = dict(_read_records(run["records"]))
    latest = records.get(run["latest"])
    if latest is None:
        judged = [entry for entry in trail if is_judged(entry) and rules.from_ms <= entry.at_ms < rules.to_ms]
        why = UNREADABLE if run["latest"] in run["records"] else DELETED
        lost.update(why if entry.erased_by is None else ERASED for entry in judged)
        return []
    return list_calls(latest.run, trail, records)


def _read_trail(raw: Sequence[str]) -> Iterator[TrailEntry]:
    for event in raw:
        try:
            yield _ENTRY.validate_json(event)
        except ValidationError:
            continue  # a damaged event; doctor names it


def _read_records(raw: dict[str, str]) -> Iterator[tuple[str, SuspensionRecord]]:
    for name, packed in raw.items():
        try:
            yield name, unpack_record(base64.b64decode(packed))[0]
        except Unreadable:
            continue


@lru_cache(maxsize=_CACHED)
def _parse(text: str, file: str, lists: str) -> Policy:
    return parse_rulebook(text.encode(), file=file, read_list=pick_file(json.loads(lists)))


@lru_cache(maxsize=_CACHED)
def _read_tools(text: str) -> dict[str, list[ToolDefinition]]:
    return _TOOLS.validate_json(text)


@lru_cache(maxsize=_CACHED)
def _find_amounts(rules: ReplayRules) -> AmountFinder:
    policies = [_parse(rules.text, rules.file, rules.lists), Policy.model_validate_json(rules.live)]
    return AmountFinder(policies, rules.path)


@lru_cache(maxsize=1)
def _give_way() -> None:
    """Let the service itself, and everything else on the machine, go first."""
    os.nice(10)


PROCESSES = max(1, min(2, os.cpu_count() or 1))
PAGE_RUNS = 100
PAGE_BYTES = 4 * 1024 * 1024
PAGE_LIMIT_S = 60.0
_JUDGING = Sandbox(places=PROCESSES, limit_s=PAGE_LIMIT_S, jobs_each=100_000)
_MOST_AT_ONCE = 8

_LOG = structlog.get_logger(__name__)


class ReplayRequest(NamedTuple):
    """The rules to try, the range in ms, the argument to sum, and rules to compare with instead of what was done.

    `lists` are the texts of the files that the lists of the rules name. With `shadow`, the version of a candidate,
    nothing is judged again: what the candidate said in shadow counts.
    """

    text: str
    file: str
    from_ms: int
    to_ms: int
    path: str | None = None
    base: str | None = None
    lists: Mapping[str, str] = NO_LISTS
    shadow: str = ""


class RuleReplays:
    """The replays that this process runs, one after the other."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self.turn = asyncio.Lock()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._starting = 0

    async def start(self, asked: ReplayRequest, by: str) -> Replay:
        """Start a replay; raises `InvalidInput` for faulty rules, and `TooManyRequests` at the limit."""
        if asked.from_ms >= asked.to_ms:
            raise InvalidInput("The range is empty. Let it end after it begins.")
        AmountFinder((), asked.path)
        if len(self._running) + self._starting >= _MOST_AT_ONCE:
            message = f"{_MOST_AT_ONCE} replays wait or run. Wait until one ends, or delete one."
            raise TooManyRequests(message, retry_after_s=30)
        self._starting += 1  # checking the rules takes time, in which others may start
        try:
            replay, rules = await self._prepare(asked, by)
        finally:
            self._starting -= 1
        task = asyncio.create_task(self._run(replay, rules))
        self._running[replay.id] = task
        task.add_done_callback(lambda _: self._running.pop(replay.id, None))
        return replay

    async def wait(self, replay_id: str, seconds: float) -> Replay:
        """Return the replay when it has ended, or after some seconds; raises `NotFound`."""
        task = self._running.get(replay_id)
        if task is not None:
            await asyncio.wait([task], timeout=seconds)
        return await self._wiring.part(ReplayStore).read(replay_id, await self._wiring.schedule.now_ms())

    async def delete(self, replay_id: str) -> bool:
        """End a replay and delete its result; one that another process runs ends within a second."""
        task = self._running.get(replay_id)
        if task is not None:
            task.cancel()
        return await self._wiring.part(ReplayStore).delete(replay_id)

    async def aclose(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        _JUDGING.close()

    async def _prepare(self, asked: ReplayRequest, by: str) -> tuple[Replay, ReplayRules]:
        wiring = self._wiring
        known = await find_known(wiring)
        version = ""
        for text, file, path in ((asked.base, "base", "$.base"), (asked.text, asked.file, "$.text")):
            if text is not None:
                checked = await wiring.desk.evaluations.check_rules(text, file, known, lists=asked.lists, caller=by)
                if checked.faults:
                    raise InvalidInput(
                        f"{file} has faults: {checked.faults[0]}",
                        errors=[{"path": path, "message": fault} for fault in checked.faults],
                    )
                version = checked.version or ""
        at_ms = await wiring.schedule.now_ms()
        replay = Replay(
            id=new_id("rpl"),
            by=by,
            file=asked.file,
            version=asked.shadow or version,
            compares=asked.base is not None,
            shadow=bool(asked.shadow),
            path=asked.path,
            from_ms=asked.from_ms,
            to_ms=min(asked.to_ms, at_ms + 1),
            started_at_ms=at_ms,
            updated_at_ms=at_ms,
        )
        await wiring.part(ReplayStore).create(replay)
        rules = ReplayRules(
            text=asked.text,
            file=asked.file,
            base=asked.base,
            lists=json.dumps(dict(asked.lists)),
            live=wiring.rules.policy().model_dump_json(),
            tools=json.dumps(dump_tools(known)),
            path=asked.path,
            from_ms=replay.from_ms,
            to_ms=replay.to_ms,
            shadow=asked.shadow,
        )
        return replay, rules

    async def _run(self, replay: Replay, rules: ReplayRules) -> None:
        work = _Work(self._wiring, replay, rules)
        judging = asyncio.create_task(self._judge(work))
        try:
            while not judging.done():
                await asyncio.wait([judging], timeout=0.5)
                if not await work.save():
                    return  # it was deleted
            await judging
            await work.save(ReplayStatus.DONE)
        except SaysoError as error:
            await work.save(ReplayStatus.FAILED, error.message)
        except Exception as error:  # noqa: BLE001 - the log and the replay name it
            _LOG.exception("replay_failed", replay=replay.id)
            await work.save(ReplayStatus.FAILED, f"It broke: {type(error).__name__}. The service's log has more.")
        finally:
            judging.cancel()
            await asyncio.wait([judging])

    async def _judge(self, work: "_Work") -> None:
        async with self.turn:
            await work.judge()


class _Work:
    def __init__(self, wiring: Wiring, replay: Replay, rules: ReplayRules) -> None:
        self._wiring, self._replay, self._rules = wiring, replay, rules
        self._result = Tally()
        self._status = ReplayStatus.WAITING
        self._runs = self._of_runs = self._deleted = self._cut = 0

    async def judge(self) -> None:
        """Judge all pages. As many as there are processes are in memory, and one more."""
        self._status, rules = ReplayStatus.RUNNING, self._rules
        self._of_runs = await self._wiring.part(RecordedRuns).count(rules.from_ms, rules.to_ms)
        judging: set[asyncio.Task[None]] = set()
        try:
            async for page in self._list_pages():
                judging.add(asyncio.create_task(self._judge_page(page)))
                if len(judging) > PROCESSES:
                    done, judging = await asyncio.wait(judging, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
            await asyncio.gather(*judging)
        finally:
            for task in judging:
                task.cancel()

    async def save(self, status: ReplayStatus | None = None, error: str = "") -> bool:
        """Save the progress or the end; return False if the replay was deleted."""
        at_ms = await self._wiring.schedule.now_ms()
        update = {
            "status": status or self._status,
            "error": error,
            "runs": self._runs,
            "of_runs": max(self._runs, self._of_runs),
            "updated_at_ms": at_ms,
            "ended_at_ms": at_ms if status is not None else None,
            "gaps": tuple(self._list_gaps(at_ms)),
            "result": self._result,
        }
        return await self._wiring.part(ReplayStore).update(self._replay.model_copy(update=update))

    async def _list_pages(self) -> AsyncIterator[list[RawRun]]:
        recorded, rules = self._wiring.part(RecordedRuns), self._rules
        async for ids in recorded.list_ids(rules.from_ms, rules.to_ms):
            for start in range(0, len(ids), PAGE_RUNS):
                runs = await recorded.read(ids[start : start + PAGE_RUNS])
                while runs:
                    count = max(1, sum(size <= PAGE_BYTES for size in accumulate(run.size for run in runs)))
                    yield runs[:count]
                    runs = runs[count:]

    async def _judge_page(self, page: Sequence[RawRun]) -> None:
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(
                _JUDGING.threads, lambda: _JUDGING.run(write_job(self._rules, page), PAGE_LIMIT_S)
            )
        except Overrun as error:
            why = error.message.partition(". ")[0]
            raise InvalidInput(f"The recorded calls could not be judged again. {why}. Simplify the rules.") from error
        self._result.add(Tally.model_validate(answer))
        self._runs += len(page)
        self._deleted += sum(not run.latest for run in page)
        self._cut += sum(run.is_cut for run in page)

    def _list_gaps(self, at_ms: int) -> Iterator[str]:
        settings = self._wiring.settings
        kept_since_ms = at_ms - settings.keep_trail_days * DAY_MS
        if self._rules.from_ms < kept_since_ms:
            yield (
                f"Calls of runs that ended before {iso_utc(kept_since_ms)[:10]} are not known: trails are deleted "
                f"after {settings.keep_trail_days} days (SAYSO_KEEP_TRAIL_DAYS)."
            )
        if self._deleted:
            yield (
                f"{self._deleted} of the runs were deleted, {settings.keep_runs_days} days after their end "
                "(SAYSO_KEEP_RUNS_DAYS). Their calls are counted, but cannot be judged again."
            )
        if erased := self._result.missing[ERASED]:
            after = (
                f", or {settings.keep_calls_days} days after" if settings.keep_calls_days is not None else ", or after"
            )
            yield (
                f"The contents of {erased} of the calls were erased: by an admin{after} the end of their run "
                "(SAYSO_KEEP_CALLS_DAYS). They are counted, but cannot be judged again."
            )
        if self._cut:
            yield f"{self._cut} of the runs have more than {MOST_EVENTS} events. Later calls of them are not counted."
