"""Earlier denials of the same call: under which name they are kept, and which a change of a suspension adds."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sayso.canonical_json import JsonObject, digest_json
from sayso.records.decisions import ActorKind, EarlierDenial, Outcome, Verdict
from sayso.records.items import Item
from sayso.records.suspensions import RunRef, SuspensionRecord

MOST_DENIALS = 20
"""The denials of one call that are kept, the latest."""


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


def find_first(denials: Iterable[EarlierDenial], run_id: str, thread_id: str | None) -> EarlierDenial | None:
    """Return the first denial in this run or thread."""
    held = [denial for denial in denials if _is_of(denial, run_id, thread_id)]
    return min(held, key=lambda denial: denial.at_ms, default=None)


def find_last(denials: Iterable[EarlierDenial], run: RunRef, place: tuple[str, str]) -> EarlierDenial | None:
    """Return the last denial in this run or thread, or of this agent, but for that of the item itself."""
    about = [denial for denial in denials if denial.agent == run.agent or _is_of(denial, run.id, run.thread_id)]
    return max((denial for denial in about if denial.place != place), key=lambda denial: denial.at_ms, default=None)


def _is_of(denial: EarlierDenial, run_id: str, thread_id: str | None) -> bool:
    return denial.run_id == run_id or (thread_id is not None and denial.thread_id == thread_id)
