"""CEL conditions: compilation, evaluation and errors."""

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sayso.core.policy.conditions import MAX_EXPRESSION_CHARS, ConditionError, Facts, compile_condition
from sayso.errors import InvalidInput


def judge(expression: str, args: Mapping[str, Any] | None = None, **others: object) -> bool:
    facts = {"args": args or {}, "tool": "refund", "agent": "support", "context": {}, "run_id": "run_1", "step": 1}
    return compile_condition(expression).holds(Facts(facts | others))


@pytest.mark.parametrize(
    ("expression", "args", "answer"),
    [
        ("args.amount > 100", {"amount": 250}, True),
        ("args.amount > 100", {"amount": 250.5}, True),
        ("args.amount > 100", {"amount": 99.5}, False),
        ("args.amount > 100.5", {"amount": 101}, True),
        ("args.amount == 250", {"amount": 250.0}, True),
        ("args.amount in [100, 250]", {"amount": 250.0}, True),
        ("double(args.amount) * 1.5 > 300.0", {"amount": 250}, True),
        ("double(args.amount) * 1.5 > 300.0", {"amount": 250.5}, True),
        ("args.flag == true", {"flag": True}, True),
        ("args.flag == 1", {"flag": True}, False),
        ("has(args.amount)", {}, False),
        ("has(args.amount) && args.amount > 100", {}, False),
        ("args.nothing == null", {"nothing": None}, True),
        ("args.deep.er['est one'] == 3", {"deep": {"er": {"est one": 3}}}, True),
        ("args.tags.exists(t, t == 'vip')", {"tags": ["x", "vip"]}, True),
        ("args.text.matches('(?i)^yes$')", {"text": "YES"}, True),
        ("args.text.matches('(x+x+)+y')", {"text": "x" * 100_000}, False),
        ("args.text == '\\u00e9\\U0001F600'", {"text": "é😀"}, True),
        ('tool == "refund" && agent.startsWith("sup") && run_id == "run_1" && step < 2', {}, True),
        ("args.missing > 1 || step == 1", {}, True),
    ],
)
def test_condition_holds(expression: str, args: dict[str, Any], answer: bool) -> None:
    assert judge(expression, args) is answer


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("tol == 'refund'", "undeclared reference to 'tol' (line 1, column 1)"),
        ("tool > 3", "no matching overload for '_>_' applied to '(string, int)'"),
        ("double(args.amount) > 3", "no matching overload"),
        ("args.amount >", "mismatched input"),
        ("args.amount", "must be true or false, but yields a value of any type"),
        ("size(args) + 1", "must be true or false, but yields a number"),
        ("", "remove `when`"),
        ("   ", "remove `when`"),
        ("args.a ==\n  foo", "undeclared reference to 'foo' (line 2, column 3)"),
        ("nowhere > 3", "agent, context, claimed, run_id, step, now, run, who, subagents, lists, constants"),
        ("(" * 100 + "true" + ")" * 100, "recursion limit"),
        ("true || " * 300 + "true", f"the limit is {MAX_EXPRESSION_CHARS}"),
        ("tool == '\ud800'", "UTF-8"),
    ],
)
def test_compile_condition_reports_the_compilers_error(expression: str, words: str) -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition(expression)
    assert words in str(caught.value)
    assert caught.value.expression == expression


def test_condition_error_has_its_position() -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition("step > 1 &&\nstop > 1")
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert "\n" not in caught.value.problem
    assert isinstance(caught.value, InvalidInput)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("expression", "args"),
    [
        ("args.amount > 100", {}),
        ("args.amount > 100", {"amount": "a lot"}),
        ("args.amount > 100", {"amount": None}),
        ("args.amount > 100", {"amount": True}),
        ("args.amount > 100", {"amount": [250]}),
        ("args.amount > 100", {"amount": 2**70}),
        ("args.amount * 2 > 100", {"amount": 250.5}),
        ("args.amount / 0 == 1", {"amount": 1}),
        ("args.deep.er == 1", {"deep": None}),
        ("args.list[0] == 1", {"list": []}),
        ("args.text.matches('(')", {"text": "x"}),
        ("args.flag ? true : false", {"flag": "yes"}),
        ("args.list.all(a, true)", {"list": list(range(11_000))}),
        ("args.l.all(a, args.l.all(b, args.l.all(c, args.l.all(d, true))))", {"l": list(range(60))}),
        ("args.text == 'x'", {"text": {1, 2}}),
        ("args.text == 'x'", {1: 2}),
        ("args.text == 'x'", {"text": "\ud800"}),
    ],
)
def test_condition_without_boolean_result(expression: str, args: dict[str, Any]) -> None:
    with pytest.raises(ConditionError):
        judge(expression, args)


def test_condition_with_missing_or_mistyped_fact() -> None:
    with pytest.raises(ConditionError):
        compile_condition("tool == 'x'").holds(Facts({"args": {}}))
    with pytest.raises(ConditionError):
        judge("step > 1", step="two")


def test_one_expression_is_compiled_once() -> None:
    assert compile_condition("step == 41") is compile_condition("step == 41")


def test_threads_may_share_a_condition() -> None:
    condition = compile_condition("args.amount > 100 && args.tags.exists(t, t == 'vip')")

    def ask(amount: int) -> bool:
        facts = {
            "args": {"amount": amount, "tags": ["vip"]},
            "tool": "",
            "agent": "",
            "context": {},
            "run_id": "",
            "step": 0,
        }
        return condition.holds(Facts(facts))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(2000)))
    assert answers == [amount > 100 for amount in range(2000)]


def test_condition_in_a_forked_process() -> None:
    condition = compile_condition("args.amount > 100")
    facts = {"args": {"amount": 250}, "tool": "", "agent": "", "context": {}, "run_id": "", "step": 0}
    assert condition.holds(Facts(facts))
    child = os.fork()
    if child == 0:
        os._exit(7 if condition.holds(Facts(facts)) and judge("args.x == 1", {"x": 1}) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_without_the_engine_the_error_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['cel_expr_python'] = None\n"
        "from sayso.core.policy.rules import PolicyRule, RuleCondition\n"
        "PolicyRule(rule_id='plain', action='deny', condition=RuleCondition(tool_name='x'))\n"
        "try: RuleCondition(when='step > 1')\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "sayso[policies]" in done.stdout
