"""Where the grants of a rule for an agent are kept, and the counters that they spend."""

from collections.abc import Iterator

from sayso.canonical_json import digest_json
from sayso.policy.memory.readings import Wanted
from sayso.records.memory.grants import Grant


def name_scope(rule_id: str, agent: str) -> str:
    """Return the name under which the grants of a rule for an agent are kept."""
    return digest_json([rule_id, agent])[:32]


def list_counters(grant: Grant) -> Iterator[Wanted]:
    """Yield the counters of a grant."""
    yield Wanted(grant.count_counter, grant.per_s)
    if grant.sum is not None:
        yield Wanted(grant.sum_counter, grant.per_s)
