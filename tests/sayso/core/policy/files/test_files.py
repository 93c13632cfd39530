"""Rule files that are valid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.files.reading import RulebookError
from sayso.core.policy.rules import Action, PolicyRule, RequestPayload, RuleCondition, Subject
from sayso.core.records.terms import EscalationStep, Fallback, FallbackAction, Quorum, RuleTerms
from tests.sayso.core.policy.rule_files import HEAD, parse
from tests.sayso.rule_builders import event


def test_parse_reads_every_field_of_a_rule() -> None:
    text = """
version: 1
default: deny
terms: {timeout_s: 60, no_self_approval: false}
rules:
  - id: whole
    priority: 200
    enabled: true
    subjects: [tool_call]
    event: tool_before_execute
    tool: "refund_*"
    agent: "support*"
    subagent: writer
    context: {equals: {env: prod, nothing: null}, has_keys: [user]}
    claimed: {equals: {team: null}, has_keys: [ticket]}
    when: args.amount > 100
    action: request_user_input
    reason: Because
    ask:
      title: Code
      prompt: The code?
      target_arg: code
      response_schema: {type: [string, "null"], default: null}
      allow_edit: false
      metadata: {a: null}
    terms:
      reviewers: [anna, ben]
      quorum: {approve: 2, deny: 1}
      timeout_s: 120
      remind_after_s: [30]
      escalate: [{after_s: 60, reviewers: [carla]}]
      fallback: {action: value, value: null, message: Too late}
"""
    policy = parse(text)
    assert policy.default is Action.DENY
    assert policy.terms == RuleTerms(timeout_s=60, no_self_approval=False)
    assert policy.rules == (
        PolicyRule(
            rule_id="whole",
            action=Action.REQUEST_USER_INPUT,
            priority=200,
            subjects=(Subject.TOOL_CALL,),
            reason="Because",
            condition=RuleCondition(
                event_type="tool_before_execute",
                tool_name_pattern="refund_*",
                agent="support*",
                subagent_name="writer",
                context_equals={"env": "prod", "nothing": None},
                context_has_keys=("user",),
                claimed_equals={"team": None},
                claimed_has_keys=("ticket",),
                when="args.amount > 100",
            ),
            request_payload=RequestPayload(
                title="Code",
                prompt="The code?",
                target_arg="code",
                response_schema={"type": ["string", "null"], "default": None},
                allow_edit=False,
                metadata={"a": None},
            ),
            terms=RuleTerms(
                reviewers=("anna", "ben"),
                quorum=Quorum(approve=2),
                no_self_approval=False,
                timeout_s=120,
                remind_after_s=(30,),
                escalate=(EscalationStep(after_s=60, reviewers=("carla",)),),
                fallback=Fallback(action=FallbackAction.VALUE, value=None, message="Too late"),
            ),
        ),
    )


def test_tool_is_a_name_or_a_pattern() -> None:
    rules = parse(
        HEAD + "  - {id: a, action: deny, tool: refund}\n  - {id: b, action: deny, tool: 're[fp]und'}\n"
    ).rules
    assert [(r.condition.tool_name, r.condition.tool_name_pattern) for r in rules] == [
        ("refund", None),
        (None, "re[fp]und"),
    ]


def test_tool_may_be_a_list() -> None:
    """A quoted list was once read as a character class, so the denial matched nothing."""
    policy = parse(HEAD + "  - {id: a, action: deny, tool: ['refund', pay_*]}\n")
    assert policy.rules[0].condition.tools == ("refund", "pay_*")
    actions = [policy.judge(event(name)).action for name in ("refund", "pay_bill", "r", "ship")]
    assert actions == [Action.DENY, Action.DENY, Action.ALLOW, Action.ALLOW]


def test_terms_of_the_rule_override_the_file_and_the_default() -> None:
    base = RuleTerms(timeout_s=1, start_by_s=2, channels=("mail",))
    text = "version: 1\ndefault: deny\nterms: {timeout_s: 3}\nrules: [{id: a, action: defer, terms: {start_by_s: 4}}]"
    policy = parse(text, terms=base)
    assert policy.terms == RuleTerms(timeout_s=3, start_by_s=2, channels=("mail",))
    assert policy.rules[0].terms == RuleTerms(timeout_s=3, start_by_s=4, channels=("mail",))


STAGES = "stages: [{reviewers: [kim]}, {reviewers: [group:finance], quorum: {approve: 2}}]"


def test_stages_of_a_rule_replace_reviewers_of_the_file_and_these_replace_stages() -> None:
    start = "version: 1\ndefault: deny\nterms: {reviewers: [anna, ben], quorum: {approve: 2}}\nrules:\n"
    terms = parse(start + f"  - {{id: a, action: defer, terms: {{{STAGES}}}}}").rules[0].terms
    assert (terms.reviewers, [stage.quorum.approve for stage in terms.stages]) == ((), [1, 2])
    start = f"version: 1\ndefault: deny\nterms: {{{STAGES}}}\nrules:\n"
    rules = "  - {id: a, action: defer}\n  - {id: b, action: defer, terms: {reviewers: [x]}}"
    kept, replaced = parse(start + rules).rules
    assert (len(kept.terms.stages), replaced.terms.stages, replaced.terms.reviewers) == (2, (), ("x",))


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        (f"terms: {{{STAGES}, reviewers: [anna]}}", "each stage has its own reviewers; move reviewers into a stage"),
        (f"terms: {{{STAGES}}}, grants: {{longest: 1h}}", "calls given ahead would pass no stage"),
        (f"terms: {{{STAGES}}}, assess: {{by: a, high: {{quorum: 2}}}}", "remove quorum and reviewers from high"),
    ],
)
def test_stages_beside_what_would_skip_them_are_refused(parts: str, problem: str) -> None:
    with pytest.raises(RulebookError, match=problem):
        parse(HEAD + f"  - {{id: a, action: defer, {parts}}}")


@pytest.mark.parametrize(
    "terms",
    [
        "remind_after_s: [600]",  # an agent's own timeout may be longer
        "timeout_s: 60, extend_by_s: 600, remind_after_s: [90]",
        "timeout_s: 60, escalate: [{after_s: 90, reviewers: [a]}], fallback: {action: escalate}",
    ],
)
def test_moment_before_the_fallback_is_valid(terms: str) -> None:
    assert parse(HEAD + f"  - {{id: a, action: defer, terms: {{{terms}}}}}").rules


def test_shorter_timeout_may_inherit_a_later_reminder() -> None:
    start = "version: 1\ndefault: deny\nterms: {timeout_s: 900, remind_after_s: [600]}\nrules:\n"
    assert parse(start + "  - {id: a, action: defer, terms: {timeout_s: 60}}").rules


fragments = st.sampled_from(
    [
        "version: 1",
        "default: allow",
        "rules:",
        "  - id: a",
        "    action: deny",
        "    when: args.x",
        "terms: {",
        "}",
        "- [",
        "    tool: 'x*'",
        "    ask:",
        "      choices: [1]",
        "    terms: {fallback: {action: value}}",
        ": *a",
        "\t",
        "''",
    ]
)


@given(st.lists(fragments, max_size=10).map("\n".join))
def test_parse_any_fragments_raises_only_rulebook_error(text: str) -> None:
    try:
        policy = parse(text)
    except RulebookError:
        return
    assert policy.default is Action.ALLOW
