"""Conditions on where a call comes from: `run`, `who`, `subagents`, and the rule key `after`."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.rules import Action
from sayso.core.records.suspensions import MOST_TOOLS, ModelUsage, Progress, Who
from sayso.features.whatif.explaining import Match, explain
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems
from tests.sayso.rule_builders import event, policy, rule

READ = Progress(
    tools=("search", "read_web"), usage=(ModelUsage(model="m-1", input_tokens=700, output_tokens=300, model_calls=4),)
)
MARA = Who(owner="tom", groups=("sales",), person="mara", issuer="https://idp.example")
KNOWN: dict[str, Any] = {
    "progress": READ,
    "who": MARA,
    "key": "crm-bot",
    "started_by": "crm-bot",
    "tenant": "default",
    "environment": "staging",
    "subagent_name": "research/web",
}


def judge(when: str, **facts: Any) -> Action:
    """Return what a rule with this condition does to a call; it denies where it holds."""
    return policy(rule("a", "deny", when=when)).judge(event("send_mail", **facts)).action


@pytest.mark.parametrize(
    "when",
    [
        '"read_web" in run.tools',
        'run.tools == ["search", "read_web"]',
        'run.tools.exists(name, name.startsWith("read_"))',
        'run.started_by == "crm-bot" && run.tenant == "default"',
        'run.environment == "staging"',
        "run.tokens == 1000 && run.input_tokens == 700 && run.output_tokens == 300",
        "run.model_calls == 4",
        'who.key == "crm-bot" && who.owner == "tom"',
        '"sales" in who.groups',
        'who.person == "mara" && who.issuer == "https://idp.example"',
        'subagents == ["research", "web"]',
        'who["person"] == "mara"',
    ],
)
def test_condition_reads_a_fact_of_the_run(when: str) -> None:
    assert judge(when, **KNOWN) is Action.DENY
    assert judge(f"!({when})", **KNOWN) is Action.ALLOW
    assert judge(when) is Action.REQUEST_APPROVAL, "an unknown fact is asked about"
    assert judge(f"!({when})") is Action.REQUEST_APPROVAL


def test_has_finds_out_whether_a_fact_is_known() -> None:
    assert judge("!has(who.person)") is Action.DENY
    assert judge("!has(who.person)", who=MARA) is Action.ALLOW
    assert judge("has(run.tools)", progress=Progress(tools=None)) is Action.ALLOW


def test_run_without_tools_so_far_has_an_empty_list() -> None:
    assert judge("size(run.tools) == 0", progress=Progress()) is Action.DENY
    assert judge("size(subagents) == 0", subagent_name="") is Action.DENY


def test_model_calls_are_unknown_if_those_of_one_model_are() -> None:
    before = ModelUsage(model="m-2", input_tokens=700)
    progress = READ.model_copy(update={"usage": (*(READ.usage or ()), before)})
    assert judge("run.model_calls == 4", progress=progress) is Action.REQUEST_APPROVAL
    assert judge("run.tokens == 1700", progress=progress) is Action.DENY
    assert judge("run.model_calls == 0", progress=Progress(usage=())) is Action.DENY


def test_groups_are_unknown_without_an_owner() -> None:
    assert judge('"sales" in who.groups', who=Who(person="mara")) is Action.REQUEST_APPROVAL


def test_facts_do_not_come_from_the_agent() -> None:
    spoofed = {"run": {"tools": []}, "who": {"person": "mara"}, "person": "mara"}
    assert judge('who.person == "mara"', claimed=spoofed, context={}) is Action.REQUEST_APPROVAL
    assert judge('who.person == "mara"', who={"person": "ben"}, claimed=spoofed) is Action.ALLOW


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("run.tool == 'x'", "there is no `run.tool`; use run.tools, run.tokens"),
        ("who['persn'] == 'x'", "there is no `who.persn`; use who.key, who.owner"),
        ("runs.tools == []", "undeclared reference to 'runs"),
    ],
)
def test_misspelt_fact_is_a_fault_of_the_file(when: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem.replace("(", r"\(")):
        rule("a", when=when)


def test_variable_of_a_list_may_have_the_name_of_a_fact() -> None:
    assert rule("a", when="args.lines.exists(run, run.cost == 1)").condition.when


# after


@pytest.mark.parametrize("after", ["read_web", "read_*", ["other", "read_web"]])
def test_after_matches_calls_behind_a_tool_of_the_run(after: Any) -> None:
    rules = policy(rule("taint", "request_approval", tool_name_pattern="send_*", after=after))
    assert rules.judge(event("send_mail", progress=READ)).policy_id == "taint"
    assert rules.judge(event("send_mail", progress=Progress(tools=("search",)))).action is Action.ALLOW
    assert rules.judge(event("look", progress=READ)).action is Action.ALLOW


@pytest.mark.parametrize("progress", [None, Progress(tools=None)])
def test_after_is_asked_about_while_the_tools_are_unknown(progress: Progress | None) -> None:
    rules = policy(rule("taint", "deny", tool_name="send_mail", after=["read_web"]))
    decision = rules.judge(event("send_mail", progress=progress))
    assert (decision.action, decision.in_doubt) == (Action.REQUEST_APPROVAL, Action.DENY)
    assert decision.error == "rule taint: it is unknown which tools ran before in this run"
    assert rules.judge(event("look", progress=progress)).action is Action.ALLOW


def test_after_counts_names_that_look_alike_unless_it_allows() -> None:
    spelt = Progress(tools=("Read-Web",))
    assert policy(rule("a", "deny", after=["read_web"])).judge(event(progress=spelt)).action is Action.DENY
    allowing = policy(rule("a", "allow", after=["read_web"]), default=Action.DENY)
    assert allowing.judge(event(progress=spelt)).action is Action.DENY
    assert allowing.judge(event(progress=READ)).action is Action.ALLOW


def test_file_takes_a_name_or_a_list_after_which_a_rule_applies() -> None:
    one, more = parse(
        HEAD + "  - {id: a, after: read_web, action: deny}\n  - {id: b, after: [read_*, fetch], action: deny}\n"
    ).rules
    assert (one.condition.after, more.condition.after) == (("read_web",), ("read_*", "fetch"))


@pytest.mark.parametrize("after", ["[]", "''", "5", "'[read'", "[5]", "{a: 1}", "null"])
def test_file_with_a_wrong_after_is_refused(after: str) -> None:
    (problem,) = read_problems(HEAD + f"  - {{id: a, action: deny, after: {after}}}\n")
    assert "rule a: after" in problem


def test_explain_shows_the_tools_that_a_rule_missed() -> None:
    found = explain(policy(rule("taint", "deny", after=["read_web"])), event(progress=Progress(tools=("search",))))
    (trial,) = found.trials
    assert (trial.match, trial.part, trial.saw) == (Match.DIFFERS, "after", {"tools": ["search"]})


def test_explain_shows_the_facts_that_a_condition_read() -> None:
    found = explain(policy(rule("a", "deny", when='"x" in run.tools')), event(**KNOWN))
    (trial,) = found.trials
    assert trial.saw["run"] == {
        "started_by": "crm-bot",
        "tenant": "default",
        "environment": "staging",
        "tools": ["search", "read_web"],
        "tokens": 1000,
        "input_tokens": 700,
        "output_tokens": 300,
        "model_calls": 4,
    }


# progress


def test_tools_are_kept_once_each_in_order() -> None:
    assert Progress().with_tools(["b", "a"]).with_tools(["a", "c", "b"]).tools == ("b", "a", "c")


def test_too_many_tools_become_unknown_for_good() -> None:
    full = Progress().with_tools(f"t{place}" for place in range(MOST_TOOLS))
    assert full.tools is not None
    assert len(full.tools) == MOST_TOOLS
    assert full.with_tools(["t1"]) is full
    over = full.with_tools(["one_more"])
    assert over.tools is None
    assert over.with_tools(["a"]).tools is None


def test_pattern_of_a_subagent_matches_its_whole_path() -> None:
    rules = policy(rule("web", "deny", subagent_name="research/*"))
    assert rules.judge(event(subagent_name="research/web")).action is Action.DENY
    assert rules.judge(event(subagent_name="web")).action is Action.ALLOW
