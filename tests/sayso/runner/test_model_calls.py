"""Rules about model calls: a denied call is not made, and the run ends."""

from typing import Any

import pytest

from sayso.adapters.chat_completions import ChatCompletionsModel
from sayso.core.policy.engine import Policy
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolDefinition
from sayso.errors import ModelError
from sayso.runner.judging import judge_model_call
from sayso.runner.loop import drive
from sayso.runner.models import ChatMessage, ModelTurn
from sayso.runner.protocol import RunEnded
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState, describe_run
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import Ledger, fields_of, make_agent, turn
from tests.sayso.walks import CALLS, START


class Unasked:
    """A model that nobody may ask."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Raise: the rules deny it."""
        raise ModelError("The model was asked.")

    def describe(self) -> dict[str, str]:
        """Return the facts that rules read."""
        return {"model": "large-1", "provider": "models.test"}


async def end_of(rules: Policy, **changes: Any) -> tuple[RunEnded[RunState], Ledger]:
    journal = Ledger("run_1")
    end = await drive(ModelRun(make_agent([], turn(CALLS["allow"]), **changes), START), policy=rules, journal=journal)
    assert isinstance(end, RunEnded)
    return end, journal


@pytest.mark.parametrize(
    "parts",
    [
        {"subjects": ["llm_call"]},
        {"subjects": ["any"]},
        {"event_type": "llm_before_execute"},
        {"subjects": ["llm_call"], "metadata_equals": {"model": "large-1", "provider": "models.test"}},
        {"subjects": ["llm_call"], "when": "context.tier == 'free'"},
        {"subjects": ["llm_call"], "when": "claimed.tier == 'gold'"},
    ],
)
async def test_model_call_denied_by_a_rule_is_not_made(parts: dict[str, Any]) -> None:
    """Three deny rules stood above an allow, and the model was asked all the same."""
    rules = policy(rule("no-models", priority=300, reason="No models today", **parts), rule("all", "allow"))
    end, _ = await end_of(rules, model=Unasked(), context={"tier": "free"})
    assert (end.status, end.error) == (
        RunStatus.DEGRADED,
        "The rules do not let the agent ask its model: No models today",
    )
    assert fields_of(end.events, "policy_decision", "event_type", "policy_id", "step") == [
        ("llm_before_execute", "no-models", 1)
    ]


async def test_model_call_denied_later_degrades_the_run() -> None:
    rules = policy(rule("short", subjects=["llm_call"], when="step > 1"), rule("all", "allow"))
    end, journal = await end_of(rules)
    assert end.status is RunStatus.DEGRADED
    assert isinstance(end.result, dict)
    assert end.result["completed"] == ["look"]
    assert fields_of((*journal.events, *end.events), "tool_completed", "tool_name") == ["look"]


async def test_model_call_denied_fails_the_run_where_denials_do() -> None:
    rules = policy(rule("none", subjects=["llm_call"]))
    end, _ = await end_of(rules, model=Unasked(), approval_denial_policy="fail")
    assert end.status is RunStatus.FAILED


async def test_rule_about_tool_calls_ignores_model_calls() -> None:
    end, journal = await end_of(policy(rule("all")))
    assert end.status is RunStatus.COMPLETED
    assert fields_of(journal.events, "policy_decision", "action") == ["deny"]


def test_model_behind_an_endpoint_has_name_and_provider() -> None:
    model = ChatCompletionsModel("https://models.test/v1", "large-1")
    agent = make_agent([], model=model)
    rules = policy(rule("a", subjects=["llm_call"], metadata_equals={"model": "large-1", "provider": "models.test"}))
    assert judge_model_call(agent, rules, lambda: describe_run(START)) is not None
    other = policy(rule("a", subjects=["llm_call"], metadata_equals={"model": "large-2"}))
    assert judge_model_call(agent, other, lambda: describe_run(START)) is None
