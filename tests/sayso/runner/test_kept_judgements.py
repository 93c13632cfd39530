"""A judgement is repeated before the start unless it would be the same: as a property, and for each key of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.engine import Policy
from sayso.core.policy.external import ExternalCall, decides_alike, describe_calls, describe_item, evaluate_calls
from sayso.core.policy.rules import PolicyRule
from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.deciding import decide, suspend
from sayso.errors import Unavailable
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from sayso.runner.revalidation import Revalidation, keeps_judgement, revalidate
from sayso.runner.tools import tool
from tests.sayso.rule_builders import policy, rule
from tests.sayso.samples import T0, draft, word

DAY_MS = 86_400_000
LIMIT: dict[str, Any] = {"limit": {"count": 3, "per": 3600}}
MONDAYS: dict[str, Any] = {"during": {"days": ["mon"], "hours": "09:00-17:00", "zone": "UTC"}}


@tool(name="refund")
def refund(order: str, amount: float) -> str:
    """Refund an order."""
    return order


AGENT = Agent(name="support", instructions="x", tools=(refund,), model=ScriptedModel([]))
ASKS = rule("asks", "request_approval", tool_name="refund", priority=1)


def judge(rules: Policy, amount: float = 5.0) -> SuspensionRecord:
    """Return the record of a refund that was judged by these rules at `T0`."""
    run = draft().run
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": amount})
    calls = [ExternalCall(call, refund.definition)]
    drafts, _ = evaluate_calls(rules, run, calls, 1, described=describe_calls(run, calls, at_ms=T0))
    return suspend(draft(run=run), drafts, T0).record


def approve(record: SuspensionRecord, **changes: Any) -> SuspensionRecord:
    return decide(record, word(record, **changes), T0).record if record.items[0].open else record


def check(record: SuspensionRecord, rules: Policy, now_ms: int = T0, **revoked: Any) -> Revalidation:
    return revalidate(record, AGENT, rules, Revocations(**revoked), now_ms)


def forget(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record as if other rules had judged its item, so that it is judged anew."""
    item = record.items[0]
    terms = item.terms.model_copy(update={"rule_version": "another"})
    return record.model_copy(update={"items": (item.model_copy(update={"terms": terms}),)})


def is_kept(record: SuspensionRecord, rules: Policy) -> bool:
    return keeps_judgement(record.items[0], rules)


PATTERNS: tuple[dict[str, Any], ...] = (
    {"tool_name": "refund"},
    {"tool_name": "pay"},
    {"tool_name_pattern": "re*"},
    {"tool_names": ["pay", "tip"]},
)
CONDITIONS: tuple[dict[str, Any], ...] = (
    {},
    {"when": "args.amount > 10"},
    {"when": "args.missing == 1"},
    MONDAYS,
)


@st.composite
def rulebooks(draw: st.DrawFn) -> Policy:
    """Draw rules about one tool or another, some of which read amounts, times or, for other tools, counters."""
    rules: list[PolicyRule] = [ASKS]
    for number in range(draw(st.integers(0, 4))):
        about, condition = draw(st.sampled_from(PATTERNS)), draw(st.sampled_from(CONDITIONS))
        action = draw(st.sampled_from(["allow", "deny", "request_approval"]))
        absolute = action == "deny" and draw(st.booleans())
        rules.append(
            rule(f"r{number}", action, **about, **condition, absolute=absolute, priority=draw(st.integers(2, 9)))
        )
    if draw(st.booleans()):
        rules.append(rule("tips", "allow", tool_name="tip", **LIMIT))
    return policy(*rules)


@given(rulebooks(), st.sampled_from([5.0, 50.0]), st.integers(0, 7 * DAY_MS))
def test_kept_judgement_is_what_judging_anew_gives(rules: Policy, amount: float, later_ms: int) -> None:
    record = approve(judge(rules, amount))
    if not is_kept(record, rules):
        return
    kept, anew = check(record, rules, T0 + later_ms), check(forget(record), rules, T0 + later_ms)
    assert (kept.again, kept.denied, kept.reasons) == (anew.again, anew.denied, anew.reasons)
    item = record.items[0]
    assert not [*rules.list_wanted(describe_item(record, item, item.tool.args))], "it would read no counter either"


def test_kept_judgement_of_rules_that_remember_other_tools() -> None:
    rules = policy(ASKS, rule("tips", "allow", tool_name="tip", **LIMIT), rule("closed", tool_name="tip", **MONDAYS))
    record = approve(judge(rules))
    assert is_kept(record, rules)
    assert check(record, rules) == Revalidation({}, {}, {}, {})


REREADING: dict[str, dict[str, Any]] = {
    "a limit": {"action": "allow", "tool_name": "refund", **LIMIT},
    "a limit for any tool": {"action": "allow", "when": "args.amount > 1000", **LIMIT},
    "a limit for a name that looks alike": {"action": "allow", "tool_name": "Refund", **LIMIT},
    "a pattern": {"action": "allow", "tool_name_pattern": "ref*", **LIMIT},
    "grants": {"action": "request_approval", "tool_name": "refund", "grants": {"longest": "7d", "count": 5}},
    "mandates of another tool": {"action": "request_approval", "tool_name": "pay", "mandates": {"longest": "1d"}},
    "an assessor": {"action": "allow", "tool_name": "refund", "assess": {"by": "fraud", "high": {}}},
    "the time, of a rule that nothing lifts": {"action": "deny", "tool_name": "refund", "absolute": True, **MONDAYS},
}


@pytest.mark.parametrize("parts", REREADING.values(), ids=REREADING)
def test_judgement_is_repeated_for_a_rule_that_reads_again(parts: dict[str, Any]) -> None:
    rules = policy(ASKS, rule("other", priority=9, **parts))
    assert not decides_alike(rules, "refund")
    assert decides_alike(policy(ASKS), "refund")
    item = approve(judge(policy(ASKS))).items[0]
    terms = item.terms.model_copy(update={"rule_version": rules.version})
    assert not keeps_judgement(item.model_copy(update={"terms": terms}), rules)


def test_judgement_is_repeated_after_the_rules_changed() -> None:
    record, stricter = approve(judge(policy(ASKS))), policy(ASKS, rule("no", tool_name="refund", reason="closed"))
    assert not is_kept(record, stricter)
    assert check(record, stricter).denied == {0: "Denied by policy: closed"}


def test_judgement_is_repeated_for_edited_arguments() -> None:
    rules = policy(ASKS, rule("large", tool_name="refund", when="args.amount > 10", reason="too much", priority=9))
    record = approve(judge(rules), args={"order": "A", "amount": 50.0})
    assert not is_kept(record, rules)
    assert check(record, rules).denied == {0: "Denied by policy: too much"}


def test_kept_judgement_starts_no_call_of_a_changed_tool_or_revoked_key() -> None:
    rules = policy(ASKS)
    record = approve(judge(rules))
    item = record.items[0]
    tool_ = item.tool.model_copy(update={"definition": "another"})
    changed = record.model_copy(update={"items": (item.model_copy(update={"tool": tool_}),)})
    assert is_kept(changed, rules)
    assert check(changed, rules).reasons == {0: "The tool refund was changed since."}
    keyed = record.model_copy(update={"run": record.run.model_copy(update={"key_id": "key_1"})})
    assert check(keyed, rules, revoked=frozenset({"key_1"})).denied.keys() == {0}
    assert "no longer a reviewer" in check(record, rules, inactive=frozenset({"ada"})).reasons[0]


def test_judgement_that_is_repeated_needs_its_counters() -> None:
    rules = policy(ASKS, rule("refunds", "allow", tool_name="refund", priority=9, **LIMIT))
    record = forget(approve(judge(policy(ASKS))))
    with pytest.raises(Unavailable):
        check(record, rules)
