"""One page of a replay: runs as stored bytes, read, judged again and counted in a process of its own."""

import base64
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.policy.functions.lists import pick_file
from sayso.core.records.base import Immutable
from sayso.core.records.events import TrailEntry
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.language import mark
from sayso.errors import Unreadable
from sayso.features.whatif.candidates import list_judged_beside
from sayso.features.whatif.matrix import AmountFinder, tally
from sayso.features.whatif.replays import ERASED, RecordedCall, Rejudged, is_judged, list_calls, rejudge
from service.store.runs.recorded import RawRun
from service.store.suspensions.packing import unpack_record

DELETED = mark("The run was deleted, and its facts with it.")
UNREADABLE = mark("The run's record cannot be read.")

_ENTRY = TypeAdapter(TrailEntry)
_TOOLS = TypeAdapter(dict[str, list[ToolDefinition]])
_NICENESS = 10
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
    return {"kind": "replay", **rules.model_dump(), "runs": [_write_run(run) for run in runs]}


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


def _write_run(run: RawRun) -> JsonObject:
    return {
        "id": run.run_id,
        "latest": run.latest,
        "trail": [event.decode(errors="replace") for event in run.trail],
        "records": {name: base64.b64encode(raw).decode() for name, raw in run.records.items()},
    }


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
    os.nice(_NICENESS)
