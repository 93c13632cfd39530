"""Tests of questions, handoffs, early ends and records of parsimony-agents, and of a loop of its LiteLLM."""

import json
import subprocess
from typing import Any

import pytest

from demo.clients import Client, Refused
from demo.stacks import neutral_environ
from launch.stops import wait_until
from sayso import Client as Reviewer
from sayso.core.records.suspensions import RunStatus
from service.core.settings import CHECKOUT
from service.core.store.keys import TenantKeys
from tests.frameworks.installations import PATIENCE_S, Installation, write_script
from tests.frameworks.kinds import KINDS
from tests.frameworks.recipes.chat_models import running_chat_model
from tests.frameworks.test_conformance import check_elsewhere, decide, find_suspensions, finished, look, money

PARSIMONY = next(one for one in KINDS if one.name == "parsimony")
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.parametrize("running", [PARSIMONY], indirect=True, ids=["parsimony"]),
]


def question(words: str, *choices: str) -> dict[str, Any]:
    return {"tool": "ask_user", "args": {"question": words, "context": "There are two.", "choices": list(choices)}}


async def test_question_accepts_one_of_its_choices(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([question("Which file?", "left", "right")], [money("ann", 5)])
        item = (await installation.find_suspension(waiting.suspension_id))["items"][-1]
        assert (item["kind"], item["choices"], item["target_arg"]) == ("input", ["left", "right"], "answer")
        assert (item["prompt"]["title"], item["prompt"]["body"]) == ("Which file?", "There are two.")
        with pytest.raises(Refused):
            await decide(reviewer, waiting.suspension_id, {"action": "value", "value": "both"})
        await decide(reviewer, waiting.suspension_id, {"action": "value", "value": "right"})
        _, second = await find_suspensions(agent, waiting.run_id, 2)
        await decide(reviewer, second, {"action": "approve"})
        _, text = await finished(agent, waiting.run_id)
        assert "| right |" in text
        check_elsewhere(installation, waiting)


async def test_questions_and_calls_of_a_turn_share_a_suspension(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5), question("Which?", "left"), question("Why?")])
        answers = [{"action": "value", "value": value} for value in ("left", "because")]
        await decide(reviewer, waiting.suspension_id, {"action": "approve"}, *answers)
        _, text = await finished(agent, waiting.run_id)
        assert [one["args"]["to"] for one in installation.effects()] == ["ann"]
        assert "Which? left" in text
        assert "Why? because" in text


async def test_denied_question_resumes_with_the_reason(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([question("Which?", "left", "right")])
        await decide(reviewer, waiting.suspension_id, {"action": "deny", "message": "Find out yourself."})
        _, text = await finished(agent, waiting.run_id)
        assert "Find out yourself." in text


async def test_question_of_a_running_tool_suspends(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5)], [look("unclear")])
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        _, second = await find_suspensions(agent, waiting.run_id, 2)
        item = (await installation.find_suspension(second))["items"][-1]
        assert (item["kind"], item["choices"]) == ("input", ["left", "right"])
        await decide(reviewer, second, {"action": "value", "value": "left"})
        _, text = await finished(agent, waiting.run_id)
        assert text.endswith("| left")


@pytest.mark.parametrize(
    ("turn", "status", "outcome", "why"),
    [
        (
            [{"tool": "return_unable", "args": {"blockers": ["no key"], "rationale": "It is locked."}}],
            RunStatus.DEGRADED,
            {"outcome": "handoff", "rationale": "It is locked.", "blockers": ["no key"], "suggested_next_steps": []},
            "It is locked.",
        ),
        (
            [],
            RunStatus.DEGRADED,
            {"outcome": "partial", "missing": [], "learned_facts": [], "next_step_plan": None},
            "ended early",
        ),
        (
            [{"tool": "stop_the_run", "args": {}}],
            RunStatus.CANCELLED,
            {"outcome": "cancelled", "reason": "user_request"},
            "cancelled",
        ),
    ],
    ids=["handoff", "partial", "cancelled"],
)
async def test_run_ends_like_its_agent(
    installation: Installation, turn: list[dict[str, Any]], status: RunStatus, outcome: dict[str, Any], why: str
) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5)], turn)
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        run = await agent.await_end(waiting.run_id)
        assert (run.status, run.result) == (status, outcome)
        assert why in str(run.error)
        assert len(installation.effects()) == 1


async def test_ended_run_is_not_resumed(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([question("Which?", "left"), money("ann", 5)])
        await decide(reviewer, waiting.suspension_id, {"action": "value", "value": "left"}, {"action": "approve"})
        _, before = await finished(agent, waiting.run_id)
        with installation.store as store:
            store.rpush(TenantKeys("default").ready, waiting.suspension_id)
        assert wait_until(lambda: installation.store.llen(TenantKeys("default").ready) == 0, PATIENCE_S)
        again = await start_and_finish(agent, installation)
        assert again == "results:"
        assert (await finished(agent, waiting.run_id))[1] == before
        assert len(installation.effects()) == 1


async def start_and_finish(agent: Client, installation: Installation) -> str:
    """Let a worker finish another run, so that earlier jobs are done."""
    run = await agent.start_run("bot", write_script(), "Nothing", key=installation.home.name)
    return (await finished(agent, run.id))[1]


def test_records_are_used_once_and_by_their_own_agent(installation: Installation) -> None:
    results = json.loads(installation.run("tests.frameworks.parsimony_invalid_operations"))
    first, second = results["twice"]
    assert "left" in first
    assert second == "ask_user is not approved, or was started before. Request it again."
    assert (results["own"], results["snapshots"]) == (None, 0)
    assert "another suspension_secret" in results["foreign"]
    assert "not a suspension of parsimony-agents: run_id: Input should be a valid string" in results["not a record"]
    assert "$.record.messages[4].content[0].text is a object, which is not JSON" in results["not JSON"]
    assert "FAILED" in results["error"]


def run_litellm(installation: Installation, model: str) -> str:
    """Run the recipe until it ends or waits, and return its output."""
    environ = neutral_environ() | {
        "SAYSO_URL": installation.stack.url,
        "SAYSO_KEY": installation.stack.agent_key,
        "MODEL": "openai/scripted",
        "OPENAI_API_BASE": model,
        "OPENAI_API_KEY": "none",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    recipe = CHECKOUT / "tests" / "frameworks" / "recipes" / "litellm_loop.py"
    command = [str(installation.kind.python), str(recipe), "talk.json", "Pay both."]
    done = subprocess.run(
        command,
        cwd=installation.home,
        env={**neutral_environ(), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_litellm_loop_runs_each_call_once_as_decided(installation: Installation) -> None:
    """No process waits. A lost conversation makes no call twice, since the desk has its report."""
    sent, talk = installation.home / "sent.txt", installation.home / "talk.json"
    with running_chat_model() as model, Reviewer(installation.stack.url, "-") as reviewer:
        reviewer.sign_in("admin", installation.stack.admin_password)
        for _again in range(2):
            assert "Calls wait for a person" in run_litellm(installation, model)
        assert not sent.exists()
        for waits in reviewer.waiting().suspensions:
            (item,) = waits.items
            if item.tool.args["to"] == "ann":
                reviewer.decide(waits.id, item, "approve", args={"to": "ann", "amount": 5})
            else:
                reviewer.decide(waits.id, item, "deny", message="Not Bob.")
        before = talk.read_text()
        ended = run_litellm(installation, model)
        talk.write_text(before)
        assert run_litellm(installation, model) == ended
    assert ended == "sent 5 to ann | send_money did not run: Not Bob."
    assert sent.read_text() == "ann 5\n"
