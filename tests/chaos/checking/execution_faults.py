"""Faults of executions, permits and freezes."""

import json

from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.suspensions import RunStatus
from tests.chaos.checking.tampering import (
    Evidence,
    completed,
    drop,
    twice,
    was_approved,
    was_decided,
    was_denied,
    with_data,
)
from tests.chaos.evidence.client_log import Exchange
from tests.chaos.evidence.freezes import FreezeLine
from tests.chaos.evidence.trails import Trail
from tests.chaos.workload.plans import TOOLS


def repeated_call(evidence: Evidence) -> None:
    place, line = next((place, line) for place, line in enumerate(evidence.effects) if not TOOLS[line.tool].idempotent)
    evidence.effects.insert(place + 1, line.model_copy(update={"effect": "eff_again", "at_ms": line.at_ms + 50}))


def second_key(evidence: Evidence) -> None:
    place, line = next((place, line) for place, line in enumerate(evidence.effects) if TOOLS[line.tool].idempotent)
    again = {"effect": "eff_again", "at_ms": line.at_ms + 50, "key": f"{line.key}:2"}
    evidence.effects.insert(place + 1, line.model_copy(update=again))


def shared_key(evidence: Evidence) -> None:
    first = evidence.effects[0]
    other = next(place for place, line in enumerate(evidence.effects) if line.run_id != first.run_id)
    evidence.effects[other] = evidence.effects[other].model_copy(update={"key": first.key})


def altered_args(evidence: Evidence) -> None:
    evidence.effects[0] = evidence.effects[0].model_copy(update={"digest": "0" * 64})


def call_without_permit(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)
    evidence.rewrite(place, drop(EventType.PERMIT_REDEEMED))


def call_before_its_permit(evidence: Evidence) -> None:
    place, line = next(evidence.starts_of(evidence.trails[evidence.find(was_approved)[0]].run_id))
    evidence.effects[place] = line.model_copy(update={"at_ms": line.at_ms - 60_000})


def late_permit(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)

    def delay(entry: TrailEntry) -> list[TrailEntry]:
        late = entry.model_copy(update={"at_ms": entry.at_ms + 2 * 3_600_000})
        return [late if entry.type == EventType.PERMIT_REDEEMED else entry]

    evidence.rewrite(place, delay)


def denied_call_ran(evidence: Evidence) -> None:
    place, index = evidence.find(was_denied)
    (item,) = index.items.values()
    line = evidence.effects[0].model_copy(
        update={"run_id": evidence.trails[place].run_id, "call_id": item.call_id, "tool": item.tool, "key": "k"}
    )
    evidence.effects.append(line)


def call_after_cancel(evidence: Evidence) -> None:
    place, index = evidence.find(lambda trail, _: trail.status is RunStatus.CANCELLED)
    assert index.cancelled is not None
    plan = json.loads(
        str(next(one for one in evidence.exchanges if _is_start_of(one, evidence.trails[place])).body["input"])
    )
    call = plan["turns"][0][0]
    update = {"run_id": evidence.trails[place].run_id, "call_id": call["call_id"], "tool": call["tool"]}
    late = {"at_ms": index.cancelled.at_ms + 100, "key": "k"}
    evidence.effects.append(evidence.effects[0].model_copy(update={**update, **late}))


def _is_start_of(exchange: Exchange, trail: Trail) -> bool:
    return exchange.kind == "start" and isinstance(exchange.answer, dict) and exchange.answer.get("id") == trail.run_id


def call_completed_twice(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(completed)[0], twice(EventType.TOOL_COMPLETED))


def call_never_completed(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(was_decided)[0], drop(EventType.TOOL_COMPLETED))


def invented_result(evidence: Evidence) -> None:
    def invent(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type == EventType.TOOL_COMPLETED:
            return [with_data(entry, success=True, output={"effect": "eff_never"})]
        return [entry]

    evidence.rewrite(evidence.find(was_approved)[0], invent)


def effect_of_unknown_run(evidence: Evidence) -> None:
    evidence.effects.append(evidence.effects[0].model_copy(update={"run_id": "run_unheard_of", "key": "k"}))


def permit_redeemed_while_frozen(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)
    permit = next(one for one in evidence.trails[place].entries if one.type == EventType.PERMIT_REDEEMED)
    at_ms = permit.at_ms - 1_500
    evidence.freezes.append(
        FreezeLine(scope="all", at_ms=at_ms, acknowledged_at_ms=at_ms, unfrozen_at_ms=permit.at_ms + 10)
    )


def start_while_frozen(evidence: Evidence) -> None:
    line = evidence.effects[0]
    scope, at_ms = f"tool:{line.tool}", line.at_ms - 6_000
    evidence.freezes.append(
        FreezeLine(scope=scope, at_ms=at_ms, acknowledged_at_ms=at_ms, unfrozen_at_ms=line.at_ms + 10)
    )
