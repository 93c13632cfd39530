"""Problems of rule files, with their positions."""

import pytest

from sayso.core.policy.files.reading import RulebookError
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems


def test_parse_reports_every_problem_with_its_position() -> None:
    text = """version: 2
defualt: allow
terms:
  timeout_s: "300"
rules:
  - id: refunds
    prioritty: 200
    subjects: [tool_call, nothing]
    when: "tol == 'x'"
    action: aprove
    ask: {promt: x}
    terms: {timeuot: 3, fallback: {actoin: deny}, escalate: [{reviewers: [a]}], quorum: {approve: 0}}
  - id: refunds
    action: request_user_input
    when:
    context: {equal: {a: 1}}
    enabled: no
    reason: 5
  - just text
  - id: last
    action: deny
    action: allow
    metadata: 3
"""
    assert read_problems(text) == [
        "policy.yaml:1:1: default: is missing; add it",
        "policy.yaml:1:10: version: write `version: 1`, the only supported version",
        "policy.yaml:2:1: there is no key `defualt` here; did you mean `default`?",
        "policy.yaml:4:14: terms.timeout_s: must be a valid integer, not '300'",
        "policy.yaml:7:5: rule refunds: there is no key `prioritty` here; did you mean `priority`?",
        "policy.yaml:8:27: rule refunds: subjects.1: must be 'any', 'tool_call' or 'llm_call', not 'nothing'",
        "policy.yaml:9:11: rule refunds: when: undeclared reference to 'tol' (line 1, column 1); "
        "a condition may use args, tool, agent, context, claimed, run_id, step, now, run, who, subagents, lists, "
        "constants",
        "policy.yaml:10:13: rule refunds: action: must be 'allow', 'deny', 'request_approval' or "
        "'request_user_input', not 'aprove'",
        "policy.yaml:11:11: rule refunds: ask: there is no key `promt` here; did you mean `prompt`?",
        "policy.yaml:12:13: rule refunds: terms: there is no key `timeuot` here; did you mean `timeout`?",
        "policy.yaml:12:36: rule refunds: terms.fallback: there is no key `actoin` here; did you mean `action`?",
        "policy.yaml:12:62: rule refunds: terms.escalate.0.after_s: is missing; add it",
        "policy.yaml:12:89: rule refunds: terms.quorum: a quorum of 0 needs `confirm_by: who.person`; write it, or "
        "raise quorum.approve",
        "policy.yaml:13:5: rule refunds: ask: request_user_input needs the argument that takes the answer; "
        "add it as target_arg",
        "policy.yaml:13:9: the id `refunds` is used twice, first on line 6; rename one",
        "policy.yaml:15:5: rule refunds: when: has no value; add one, or remove the key",
        "policy.yaml:16:15: rule refunds: context: there is no key `equal` here; did you mean `equals`?",
        "policy.yaml:17:14: rule refunds: enabled: must be a valid boolean, not 'no'",
        "policy.yaml:18:13: rule refunds: reason: must be a text, not 5; put it in quotes",
        "policy.yaml:19:5: rule 3: must be a mapping, not 'just text'",
        "policy.yaml:22:5: `action` is duplicated, first on line 21; remove one",
        "policy.yaml:23:15: rule last: metadata: must be a mapping with `equals`",
    ]


ASKS_CODE = "  - {id: a, action: request_user_input, ask: {target_arg: code, response_schema: {type: string, "


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: the file holds no rules"),
        ("- 1", "1:1: the file holds no rules"),
        ("version: 1\ndefault: allow", "1:1: rules: is missing"),
        ("version: 1\nrules: []", "1:1: default: is missing"),
        ("version: true\ndefault: allow\nrules: []", "1:10: version: write `version: 1`"),
        ("version: 1\ndefault: request_user_input\nrules: []", "2:10: default: the default cannot ask for a value"),
        ("version: 1\ndefault:\nrules: []", "2:1: default: has no value"),
        ("version: 1\ndefault: allow\nrules:", "3:1: rules: has no value"),
        ("version: 1\ndefault: allow\nrules: 3", "3:8: rules: must be a valid list, not 3"),
        ("version: 1\ndefault: allow\nterms: 3\nrules: []", "3:8: terms: must be a mapping"),
        ("version: 1\ndefault: allow\nterms: {unattended_approval: true}\nrules: []", "belongs in each rule"),
        (
            "version: 1\ndefault: allow\nterms: {fallback: {action: approve}}\nrules: []",
            "3:19: terms.fallback: fallback approve",
        ),
        (HEAD + "  - {action: deny}", "4:5: rule 1: id: is missing"),
        (HEAD + "  - {id: a}", "4:5: rule a: action: is missing"),
        (HEAD + "  - {id: a b, action: deny}", "4:10: rule a b: id: must match pattern"),
        (HEAD + "  - {id: a, action: deny, tool: }", "rule a: tool: has no value"),
        (HEAD + "  - {id: a, action: deny, subjects: [null]}", "4:38: rule a: subjects.0: has no value"),
        (HEAD + "  - {id: a, action: deny, subjects: []}", "subjects: must have at least 1 item, not []"),
        (
            HEAD + """  - {id: a, action: deny, tool: "['pay-bill', 'b']"}""",
            "4:33: rule a: tool: this is a list written as a text; write it without the outer quotes, as [pay-bill, b]",
        ),
        (HEAD + "  - {id: a, action: deny, tool: []}", "rule a: tool: must have at least 1 item"),
        (HEAD + "  - {id: a, action: deny, tool: [5]}", "4:34: rule a: tool.0: must be a text, not 5"),
        (
            HEAD + """  - {id: a, action: deny, when: 'args.amount > "100"'}""",
            '4:33: rule a: when: "100" is a text, which cannot be compared with a number; write 100',
        ),
        (HEAD + """  - {id: a, action: deny, when: "'5' <= args.amount"}""", "which cannot be compared with a number"),
        (HEAD + "  - {id: a, action: deny, tool: ''}", "tool: must have at least 1 character, not ''"),
        (HEAD + "  - {id: a, action: deny, metadata: {equals: }}", "rule a: metadata.equals: has no value"),
        (HEAD + "  - {id: a, action: defer, ask: {choices: }}", "rule a: ask.choices: has no value"),
        (HEAD + "  - {id: a, action: defer, terms: {fallback: }}", "rule a: terms.fallback: has no value"),
        (
            HEAD + "  - {id: a, action: deny, subjects: [subagent_call]}",
            "4:38: rule a: subjects.0: the start of a sub-agent is not evaluated; write `subagent: NAME`",
        ),
        (HEAD + "  - {id: a, action: deny, subjects: [interaction]}", "subjects.0: interactions are not evaluated"),
        (HEAD + "  - {id: a, action: deny, event: subagent_before_execute}", "4:34: rule a: event: the start of a sub"),
        (
            HEAD + "  - {id: a, action: deny, event: tool_after_execute}",
            "event: must be 'tool_before_execute' or 'llm_before_execute', not 'tool_after_execute'",
        ),
        (
            HEAD + "  - {id: a, action: deny, event: llm_before_execute, subjects: [tool_call]}",
            "rule a: event llm_before_execute is none of the rule's subjects",
        ),
        (HEAD + "  - {id: a, action: defer, subjects: [any]}", "subjects: only tool calls can be asked about"),
        (HEAD + "  - {id: a, action: defer, event: llm_before_execute}", "only tool calls can be asked about"),
        (HEAD + "  - {id: a, action: deny, subjects: [llm_call], tool: pay}", "a model call has no tool"),
        (
            HEAD + "  - {id: a, action: deny, metadata: {equals: {kind: x}}}",
            "there is no 'kind' in metadata; use model",
        ),
        (HEAD + "  - {id: a, action: deny, metadata: {equals: {model: x}}}", "only model calls have metadata"),
        (
            HEAD + "  - {id: a, action: deny, subjects: [llm_call], metadata: {equals: {model: 3}}}",
            "model is a text, so it never equals 3",
        ),
        (HEAD + "  - {id: a, action: deny, context: }", "4:27: rule a: context: has no value"),
        (
            HEAD + "  - {id: a, action: deny, when: true}",
            "4:33: rule a: when: must be a text, not True; put it in quotes",
        ),
        (HEAD + "  - {id: a, action: deny, when: args.x}", "4:33: rule a: when: the expression must be true or false"),
        (
            HEAD + "  - id: a\n    action: deny\n    when: |\n      args.x &&\n      foo",
            "6:11: rule a: when: undeclared",
        ),
        (
            HEAD + "  - {id: a, action: deny, ask: {title: x}}",
            "4:32: rule a: ask: a rule with the action deny asks nobody",
        ),
        (HEAD + "  - {id: a, action: defer, ask: {target_arg: x}}", "needs the action request_user_input"),
        (HEAD + "  - {id: a, action: defer, terms: {fallback: {action: approve}}}", "set unattended_approval: true"),
        (
            HEAD + ASKS_CODE + "pattern: '('}}}",
            '4:82: rule a: ask.response_schema: is not usable: "(" is not a "regex"',
        ),
        (
            HEAD + ASKS_CODE + "}}, terms: {fallback: {action: value, value: 7}}}",
            "rule a: terms.fallback.value: is not usable: value: 7 is not of type",
        ),
        (
            HEAD + "  - {id: a, action: defer, terms: {reviewers: [anna, anna], quorum: {approve: 2}}}",
            "4:35: rule a: terms: the quorum exceeds the 1 reviewers who may decide",
        ),
        (
            HEAD + "  - {id: a, action: defer, terms: {reviewers: [anna], sample: {before: 0.1}}}",
            "4:35: rule a: terms: an item drawn by sample needs 2 approvals and has 1 reviewers",
        ),
        (
            HEAD + "  - {id: a, action: defer, terms: {reviewers: [anna], sample: {after: 0.1}}}",
            "4:35: rule a: terms: a second look needs a reviewer who did not decide, but all 1 may have to",
        ),
        (
            HEAD + "  - {id: a, action: defer, terms: {sample: {}}}",
            "rule a: terms.sample: sample needs a share; write before: or after:",
        ),
        (
            HEAD + "  - {id: a, action: defer, terms: {sample: {before: 0.1, later: 0.1}}}",
            "rule a: terms.sample: there is no key `later` here; did you mean `after`?",
        ),
        (
            HEAD.replace("rules", "terms: {reviewers: [anna], quorum: {approve: 2}}\nrules")
            + "  - {id: a, action: deny}",
            "3:8: terms: the quorum exceeds the 1 reviewers who may decide",
        ),
        (
            HEAD + ASKS_CODE + "format: date}}, terms: {fallback: {action: value, value: soon}}}",
            'terms.fallback.value: is not usable: value: "soon" is not a "date"',
        ),
        (HEAD + "  - {id: a, action: deny, tool: '[a-'}", "4:33: rule a: tool: a [ has no closing ]"),
        (HEAD + "  - {id: a, action: deny, agent: 'b[z-a]'}", "rule a: agent: [z-a] goes from z back to a"),
        (
            HEAD + "  - {id: a, action: defer, terms: {timeout_s: 60, remind_after_s: [30, 60]}}",
            "4:72: rule a: terms.remind_after_s.1: comes after the fallback, which decides after 60 s",
        ),
        (
            "version: 1\ndefault: deny\nterms: {timeout_s: 9, escalate: [{after_s: 9, reviewers: [a]}]}\nrules: []",
            "3:44: terms.escalate.0.after_s: comes after the fallback",
        ),
        (HEAD + "  - {id: a, action: defer, terms: {timeout_s: 1.5}}", "terms.timeout_s: must be a valid integer"),
        (HEAD + "  - {id: a, action: defer, terms: {no_self_approval: no}}", "must be a valid boolean, not 'no'"),
        (HEAD + "  - {id: a, action: defer, ask: {metadata: {n: .nan}}, terms: {x: *a}}", "aliases"),
        (HEAD + "  - &a {id: a, action: deny}", "4:5: anchors"),
        (HEAD + "  - {id: a, action: deny, <<: {tool: x}}", "there is no key `<<` here; use `id`"),
    ],
)
def test_parse_reports_a_problem(text: str, problem: str) -> None:
    assert any(problem in line for line in read_problems(text)), read_problems(text)


def test_terms_of_a_deny_rule_need_no_quorum() -> None:
    text = HEAD.replace("rules", "terms: {quorum: {approve: 2}}\nrules")
    assert parse(text + "  - {id: a, action: deny, terms: {reviewers: [anna]}}").rules


def test_missing_value_is_reported_once() -> None:
    for text in ("version: 1\ndefault: deny\nterms:\nrules: []", "version: 1\ndefault:\nrules: []"):
        assert len(read_problems(text)) == 1
    assert len(read_problems(HEAD + "  - {id: a, action: deny, when: }")) == 1


def test_fault_in_terms_is_reported_once() -> None:
    text = "version: 1\ndefault: deny\nterms: {timeout_s: -1}\nrules: [{id: a, action: defer}, {id: b, action: defer}]"
    assert len(read_problems(text)) == 1


def test_wrong_subject_is_reported_once() -> None:
    (line,) = read_problems(HEAD + "  - {id: a, action: deny, subjects: [tool_cal]}")
    assert "subjects.0: " in line


def test_fallback_fault_is_reported_beside_other_faults() -> None:
    lines = read_problems(HEAD + "  - {id: a, action: defer, terms: {timeout_s: x, fallback: {action: approve}}}")
    assert len(lines) == 2


def test_problem_has_file_line_and_column() -> None:
    with pytest.raises(RulebookError) as caught:
        parse(HEAD + "  - {id: a, action: perhaps}")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column) == ("policy.yaml", 4, 21)
    assert isinstance(caught.value, ValueError)
