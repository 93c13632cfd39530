"""Where the mandates of a conversation are kept, and the counters that a call spends."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sayso.canonical_json import digest_json
from sayso.policy.memory.readings import Wanted
from sayso.records.memory.mandates import Mandate

if TYPE_CHECKING:
    from sayso.policy.provenance.events import PolicyEvent


def name_mandate_scope(owner: str, agent: str, thread_id: str) -> str:
    """Return the name under which the mandates of an agent in a conversation of its owner are kept."""
    return digest_json(["mandates", owner, agent, thread_id])[:32]


def name_scope_of(mandate: Mandate) -> str:
    """Return the name under which a mandate is kept."""
    return name_mandate_scope(mandate.owner, mandate.agent, mandate.thread_id)


def find_scope(event: "PolicyEvent") -> str | None:
    """Return the name under which the mandates for a call are kept; None where its owner or conversation is unknown."""
    if event.started_by is None or event.thread_id is None or event.tool_name is None:
        return None
    return name_mandate_scope(event.started_by, event.agent, event.thread_id)


def want_mandates(event: "PolicyEvent") -> Iterator[Wanted]:
    """Yield what to read to know the mandates that may cover a call."""
    scope = find_scope(event)
    if scope is not None:
        yield Wanted(scope, 0, tool=event.tool_name)


def list_mandate_counters(mandate: Mandate, tool: str | None = None) -> Iterator[Wanted]:
    """Yield the counters of a mandate: those of all its calls, and those of one tool."""
    yield Wanted(mandate.count_counter, mandate.per_s)
    if mandate.envelope.sum is not None:
        yield Wanted(mandate.sum_counter, mandate.per_s)
    for part in mandate.envelope.tools:
        if part.tool != tool:
            continue
        if part.count is not None:
            yield Wanted(mandate.name_counter(part, "count"), mandate.per_s)
        if part.sum is not None and part.sum.max is not None:
            yield Wanted(mandate.name_counter(part, "sum"), mandate.per_s)
