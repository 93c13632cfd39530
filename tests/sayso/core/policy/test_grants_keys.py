"""The key `grants` of a rule in a file, and its faults."""

import pytest

from sayso.core.policy.files.reading import RulebookError, parse_rulebook

START = "version: 1\ndefault: deny\nrules:\n  - {id: r, tool: t, action: %s, grants: {%s}}\n"


def test_grants_are_read() -> None:
    text = "longest: 7d, count: 50, sum: {of: args.amount, max: 5000}, by: args.customer, people: 2"
    (rule,) = parse_rulebook((START % ("request_approval", text)).encode(), file="f").rules
    assert rule.grants is not None
    assert (rule.grants.longest, rule.grants.by, rule.grants.people) == (7 * 86_400, ("args.customer",), 2)


@pytest.mark.parametrize(
    ("action", "text", "says"),
    [
        ("allow", "longest: 7d", "rule r: grants: only calls that need an approval can be granted"),
        ("request_approval", "count: 5", "rule r: grants.longest: is missing; add it"),
        ("request_approval", "longest: week", "rule r: grants.longest: 'week' is not a period"),
        (
            "request_approval",
            "longest: 7d, coun: 5",
            "there is no key `coun` here; did you mean `count`?",
        ),
        ("request_approval", "longest: 7d, by: agent", "'agent' is not an argument"),
        ("request_approval", "longest: 7d, sum: {of: args.a}", "rule r: grants.sum.max: is missing; add it"),
    ],
)
def test_fault_is_named_at_its_place(action: str, text: str, says: str) -> None:
    with pytest.raises(RulebookError) as found:
        parse_rulebook((START % (action, text)).encode(), file="f")
    assert says in str(found.value)
