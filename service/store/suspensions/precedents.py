"""What a commit keeps of decisions: measures of approved calls, the reviewer's last approval of a tool, and denials."""

from collections.abc import Iterator

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.restraining import MOST_DENIALS, describe_denial, is_denied, list_denials
from sayso.core.precedents import find_measures, write_measures
from sayso.core.records.decisions import ActorKind, Decision, DecisionAction, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.redaction import redact
from sayso.core.transitions.deciding import find_item
from service.store.connection.commits import Commit, Update
from service.store.keys import TenantKeys

MOST_PRECEDENTS = 200
_KEPT_MS = 180 * DAY_MS


def note_precedents(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Keep the approvals and denials by people that a change brings; most changes have none."""
    before, after = update.before, update.after
    if before is None:
        return
    for name, denial in list_denials(before, after):
        key = keys.denials(name)
        commit.write("RPUSH", key, denial.model_dump_json())
        commit.write("LTRIM", key, -MOST_DENIALS, -1)
        commit.write("PEXPIRE", key, _KEPT_MS)
    run = after.run
    for item in after.items:
        earlier = find_item(before, item.item_id)
        if item is earlier or item.drill is not None:
            continue
        for decision in item.decisions[len(earlier.decisions) :]:
            if _is_approval(decision):
                key = keys.last_approval(decision.by.id, run.owner, run.agent, item.tool.name)
                commit.write("SET", key, f"{after.id} {item.item_id}", "PX", _KEPT_MS)
        if earlier.open and _is_approved(item):
            measures = find_measures(_find_args(item))
            if measures:
                key = keys.precedents(run.owner, run.agent, item.tool.name)
                commit.write("RPUSH", key, write_measures(measures))
                commit.write("LTRIM", key, -MOST_PRECEDENTS, -1)
                commit.write("PEXPIRE", key, _KEPT_MS)


def list_forgotten(keys: TenantKeys, record: SuspensionRecord) -> Iterator[tuple[str, str, *tuple[str | int, ...]]]:
    """Yield the commands that remove what was kept of the record's calls for comparison."""
    for item in record.items:
        if is_denied(item):
            name, denial = describe_denial(record, item)
            yield "LREM", keys.denials(name), 0, denial.model_dump_json()
        measures = find_measures(_find_args(item))
        if _is_approved(item) and measures:
            key = keys.precedents(record.run.owner, record.run.agent, item.tool.name)
            yield "LREM", key, 1, write_measures(measures)


def _find_args(item: Item) -> JsonObject:
    """Return the approved arguments without secrets."""
    outcome = item.outcome
    args = item.tool.args if outcome is None or outcome.args is None else outcome.args
    return redact(args, None, item.terms.secrets).args if item.terms.secrets else args


def _is_approval(decision: Decision) -> bool:
    return decision.by.kind is ActorKind.HUMAN and decision.action is DecisionAction.APPROVE


def _is_approved(item: Item) -> bool:
    outcome = item.outcome
    return outcome is not None and outcome.verdict is Verdict.APPROVED and outcome.by.kind is ActorKind.HUMAN
