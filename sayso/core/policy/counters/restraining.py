"""Which requests a rule denies without asking: calls that people have denied, and calls beyond what it asks about."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.matching import may_be_about
from sayso.core.policy.rule_keys import AfterDenial
from sayso.core.policy.rules import ASKING, Action, Subject
from sayso.core.records.decisions import ActorKind, EarlierDenial, Outcome, Verdict
from sayso.core.records.items import Item
from sayso.core.records.judgements import Charge
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from sayso.errors import SaysoError

if TYPE_CHECKING:
    from sayso.core.policy.events import PolicyEvent
    from sayso.core.policy.rules import PolicyRule


MOST_DENIALS = 20  # the denials of one call that are kept, the latest


class NamedDenial(NamedTuple):
    """A denial, and the name under which those of the same call are kept."""

    name: str
    denial: EarlierDenial


def name_denials(owner: str, tool: str, args: JsonObject) -> str:
    """Return a name that hides the arguments: the digest of the owner, the tool and the canonical arguments."""
    return digest_json(["denials", owner, tool, args])[:32]


def list_denials(before: SuspensionRecord | None, after: SuspensionRecord) -> Iterator[NamedDenial]:
    """Yield the calls that people have denied with this change; the false call of a drill was none."""
    known = {item.item_id: item for item in before.items} if before is not None else {}
    for item in after.items:
        earlier = known.get(item.item_id)
        if earlier is not None and earlier is not item and earlier.open and is_denied(item):
            yield describe_denial(after, item)


def is_denied(item: Item) -> bool:
    """Return whether a person has denied the call of an item."""
    denied = item.outcome is not None and is_denial(item.outcome)
    return denied and item.drill is None and item.doubt is None and item.mandate is None


def is_denial(outcome: Outcome) -> bool:
    """Return whether an outcome is a person's denial."""
    return outcome.verdict is Verdict.DENIED and outcome.by.kind is ActorKind.HUMAN


def describe_denial(record: SuspensionRecord, item: Item) -> NamedDenial:
    """Return the denial of an item."""
    run, outcome = record.run, item.outcome
    denial = EarlierDenial(
        by=outcome.by.id if outcome is not None else "",
        at_ms=outcome.at_ms if outcome is not None else 0,
        message=(outcome.message if outcome is not None else None) or "",
        suspension_id=record.id,
        item_id=item.item_id,
        run_id=run.id,
        thread_id=run.thread_id,
        agent=run.agent,
    )
    return NamedDenial(name_denials(run.owner, item.tool.name, item.tool.args), denial)


def find_last(denials: Iterable[EarlierDenial], run: RunRef, place: tuple[str, str]) -> EarlierDenial | None:
    """Return the last denial in this run or thread, or of this agent, but for that of the item itself."""
    about = [denial for denial in denials if denial.agent == run.agent or _is_of(denial, run.id, run.thread_id)]
    return max((denial for denial in about if denial.place != place), key=lambda denial: denial.at_ms, default=None)


def _is_of(denial: EarlierDenial, run_id: str, thread_id: str | None) -> bool:
    return denial.run_id == run_id or (thread_id is not None and denial.thread_id == thread_id)


RUN_S = 30 * DAY_MS // 1000  # how long the requests of a run count


class _Cap(NamedTuple):
    """A counter of what a rule asked about, the most it may hold, and the reason beyond it."""

    wanted: Wanted
    most: int
    reason: str


def want_restraints(rules: Iterable["PolicyRule"], event: "PolicyEvent") -> Iterator[Wanted]:
    """Yield what to read to know whether rules that may ask about a call deny it."""
    for rule in _list_about(rules, event):
        yield from (cap.wanted for cap in _list_caps(rule, event))
        if rule.after_denial is AfterDenial.DENY and (name := _name_denials(event)):
            yield Wanted(name, 0, denials=True)


def restrain(
    rules: Iterable["PolicyRule"], event: "PolicyEvent", decision: PolicyDecision, readings: Readings
) -> PolicyDecision:
    """Deny a call that its rule does not ask about again; otherwise note what asking about it adds to counters.

    A call that no rule could be evaluated for meets the restraints of all rules that may be about it. What is not
    known denies nothing: the commit holds the counters to their limits.
    """
    if decision.action not in ASKING:
        return decision
    asked: list[Charge] = []
    doubtful = decision.in_doubt is not None or bool(decision.resembles)
    asking = [rule for rule in _list_about(rules, event) if doubtful or rule.rule_id == decision.policy_id]
    for rule in asking:
        denials = readings.get(_name_denials(event)) if rule.after_denial is AfterDenial.DENY else None
        held = denials.denials if denials is not None else ()
        if about := [denial for denial in held if _is_of(denial, event.run_id, event.thread_id)]:
            return _deny(decision, _describe(min(about, key=lambda denial: denial.at_ms)))
        for cap in _list_caps(rule, event):
            reading = readings.get(cap.wanted.counter)
            if reading is not None and reading.total >= cap.most:
                return _deny(decision, cap.reason)
            asked.append(Charge(counter=cap.wanted.counter, per_s=cap.wanted.per_s, most=cap.most))
    return decision.model_copy(update={"asked": tuple(asked)}) if asked else decision


def _list_about(rules: Iterable["PolicyRule"], event: "PolicyEvent") -> list["PolicyRule"]:
    if event.subject is not Subject.TOOL_CALL:
        return []
    return [rule for rule in rules if rule.restrains and may_be_about(rule, event.tool_name or "")]


def _list_caps(rule: "PolicyRule", event: "PolicyEvent") -> Iterator[_Cap]:
    if rule.asks is None:
        return
    owner, thread = event.started_by or "", event.thread_id or event.run_id
    of_run, of_agent = rule.asks.per_run, rule.asks.per_minute
    if of_run is not None:
        reason = (
            f"Rule {rule.rule_id} asks people about {of_run} calls of a run at most, and this run has reached that. "
            "The call is denied without asking. Go on without it, and say so in your answer."
        )
        yield _Cap(Wanted(_name_counter("per_run", rule.rule_id, owner, thread), RUN_S), of_run, reason)
    if of_agent is not None:
        reason = (
            f"Rule {rule.rule_id} asks people about {of_agent} calls of {event.agent} a minute at most, and it has "
            "reached that. The call is denied without asking. Request it again in a minute, if it is still needed."
        )
        yield _Cap(Wanted(_name_counter("per_minute", rule.rule_id, owner, event.agent), 60), of_agent, reason)


def _name_counter(*about: str) -> str:
    return digest_json(["asks", *about])[:32]


def _name_denials(event: "PolicyEvent") -> str:
    """Return the name of the denials of a call; empty for arguments that are not JSON, which nobody has denied."""
    try:
        return name_denials(event.started_by or "", event.tool_name or "", event.tool_args)
    except SaysoError:
        return ""


def _describe(denial: EarlierDenial) -> str:
    said = denial.message[:1_500].rstrip().removesuffix(".")
    why = f": {said}." if said else "."
    return (
        f"{denial.by} has denied this very call before{why} It stays denied in this run and its thread. "
        "Request another call, or go on without it."
    )


def _deny(decision: PolicyDecision, reason: str) -> PolicyDecision:
    update = {"action": Action.DENY, "reason": reason, "request_payload": None, "allowance": (), "restrained": True}
    return decision.model_copy(update=update)
