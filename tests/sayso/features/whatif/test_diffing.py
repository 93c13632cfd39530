"""The differences of two rulebooks, in parts and in words."""

from typing import Any

from hypothesis import given, settings

from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action, PolicyRule
from sayso.core.records.terms import RuleTerms
from sayso.features.whatif.diffs import Kind, compare_rulebooks, list_differences
from tests.sayso.features.whatif.test_matrix import draw_rules
from tests.sayso.rule_builders import policy, rule

READS = rule("reads", "allow", tool_name_pattern="read_*")
LARGE = rule("large", "request_approval", priority=200, tool_name="refund", when="args.amount > 100")
OLD = policy(READS, LARGE, default=Action.DENY)


def describe(old: Policy, *rules: PolicyRule, default: Action = Action.DENY, terms: RuleTerms | None = None) -> str:
    return "\n".join(list_differences(compare_rulebooks(old, policy(*rules, default=default, terms=terms))))


def test_equal_rulebooks_have_no_difference() -> None:
    assert not compare_rulebooks(OLD, policy(LARGE, READS, default=Action.DENY))


def test_rules_that_come_go_and_change_their_name_are_told() -> None:
    text = describe(OLD, LARGE, rule("lookups", "allow", tool_name_pattern="read_*"), rule("mail", tool_name="mail"))
    assert text.splitlines() == [
        "Rule lookups was called reads.",
        "Rule mail is new (priority 100): Calls of mail are denied.",
    ]
    assert describe(OLD, READS).startswith("Rule large is gone (priority 200): Calls of refund with amount over 100")


def test_changed_parts_are_told_in_words() -> None:
    parts: dict[str, Any] = {"tool_name": "refund", "when": "args.amount > 1000", "priority": 50, "reason": "Large"}
    terms = {"reviewers": ["anna"], "timeout_s": 60, "start_by_s": 9}
    text = describe(OLD, READS, rule("large", "request_approval", **parts, terms=terms), default=Action.ALLOW)
    for words in (
        'The file: `default` is "allow", no longer "deny".',
        "Rule large: covers “Calls of refund with amount over 1000”, no longer “Calls of refund with amount over 100”.",
        "Rule large: asks anna, no longer any reviewer.",
        "Rule large: `priority` is 50, no longer 200.",
        'Rule large: `reason` is "Large", no longer not given.',
        "Rule large: waits 1 min, no longer 5 min",
        "Rule large: `terms.start_by_s` is 9, no longer 3600.",
        "Rule reads: is tried before large now, no longer after.",
    ):
        assert words in text, words
    assert "Rule reads: allows" not in text


def test_changed_action_and_disabled_rule_are_told() -> None:
    text = describe(OLD, READS.model_copy(update={"enabled": False}), LARGE.model_copy(update={"action": Action.DENY}))
    assert "Rule large: denies, no longer asks for approval." in text
    assert "Rule reads: is disabled." in text


def test_terms_of_the_file_are_told_once() -> None:
    terms = RuleTerms(timeout_s=60)
    new = [one.model_copy(update={"terms": terms}) for one in (READS, LARGE)]
    assert describe(OLD, *new, terms=terms).splitlines() == [
        "The file: `terms.timeout_s` is 60, no longer 300.",
        "The file's terms change large and reads, too.",
    ]


@settings(deadline=None, max_examples=50)
@given(draw_rules(), draw_rules())
def test_rulebooks_of_different_versions_differ(old: Policy, new: Policy) -> None:
    found = compare_rulebooks(old, new)
    assert bool(found) == (old.version != new.version)
    assert bool(list_differences(found)) == bool(found)
    back = compare_rulebooks(new, old)
    swapped = {Kind.ADDED: Kind.REMOVED, Kind.REMOVED: Kind.ADDED}
    named = {(swapped.get(one.kind, one.kind), one.rule_id) for one in found.rules if one.kind in swapped}
    assert named == {(one.kind, one.rule_id) for one in back.rules if one.kind in swapped}


def test_changed_lists_and_constants_are_told_by_their_entries() -> None:
    old = OLD.model_copy(update={"lists": {"eu": ("AT", "DE"), "old": ("x",)}, "constants": {"limit": 100, "on": True}})
    lists = {"eu": ("DE", "CH"), "new": ("y",)}
    new = OLD.model_copy(update={"lists": lists, "constants": {"limit": 200, "on": 1}})
    assert list_differences(compare_rulebooks(old, new)) == [
        'The file: `lists.eu` has ["CH"] now and has ["AT"] no longer.',
        'The file: `lists.new` is ["y"], no longer not given.',
        'The file: `lists.old` is not given, no longer ["x"].',
        "The file: `constants.limit` is 200, no longer 100.",
        "The file: `constants.on` is 1, no longer true.",
    ]
    turned = old.model_copy(update={"lists": {**old.lists, "eu": ("DE", "AT")}})
    assert "in another order" in list_differences(compare_rulebooks(old, turned))[0]
