"""Tests of agents that a gated tool gets only when it runs: their tools do not run unasked."""

from typing import Any

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)

COMMON = ("built", "cached", "imported", "in_sync", "in_pool", "in_thread_pool", "swallowed")
LATE = {
    "pydantic_ai": (*COMMON, "from_deps", "with_toolset"),
    "openai_agents": (*COMMON, "from_context", "handed", "shell"),
    "agent_framework": (*COMMON, "from_session", "with_tools"),
    "autogen": (*COMMON, "team", "tool_of_code", "code"),
    "langgraph": (*COMMON, "in_blocking_thread", "by_hand_in_thread"),
    "afk": COMMON,
    "parsimony": COMMON,
    "google_adk": (*COMMON, "from_context", "code"),
    "crewai": (*COMMON, "in_words", "crew", "by_client"),
}
"""The ways in which a tool of each framework gets an agent."""

WITH_CONTEXT = ("from_deps", "from_context", "from_session")
"""Those whose tools need a context of the framework."""

TOOLS = {
    ("openai_agents", "handed"): "ask_payer",
    ("openai_agents", "shell"): "local_shell",
    ("autogen", "code"): "Code",
    ("google_adk", "code"): "Code",
}
ALLOWED = {
    "pydantic_ai": ("gated_function", "gated_agent"),
    "openai_agents": ("gated_function", "gated_agent"),
    "agent_framework": ("gated_function", "gated_agent", "by_code"),
    "autogen": ("gated_function", "gated_agent", "by_code"),
    "langgraph": ("gated_function", "gated_agent", "by_code"),
    "afk": ("gated_function", "gated_agent"),
    "parsimony": ("gated_function", "gated_agent"),
    "google_adk": ("gated_function", "gated_agent", "by_code"),
    "crewai": ("gated_function", "gated_agent", "by_code"),
}
"""What a tool may call: what a gate has seen, and what its own code runs."""

GUARDED = {
    "pydantic_ai": ["ToolManager._raw_execute"],
    "openai_agents": [
        "agents.tool._invoke_function_tool_with_metadata",
        "agents.run_internal.tool_execution._invoke_function_tool_with_metadata",
        "ComputerAction.execute",
        "LocalShellAction.execute",
        "ShellAction.execute",
        "CustomToolAction.execute",
        "ApplyPatchAction.execute",
    ],
    "agent_framework": ["FunctionTool.invoke"],
    "autogen": [
        "AssistantAgent._execute_tool_call",
        "BaseTool.run_json",
        "BaseStreamTool.run_json_stream",
        "CodeExecutorAgent.execute_code_block",
    ],
    "langgraph": ["BaseTool.run", "BaseTool.arun"],
    "afk": ["Tool.call", "Runner.run_handle", "Runner.resume_handle"],
    "parsimony": ["Tool.__call__"],
    "google_adk": [
        "google.adk.flows.llm_flows.tools._caller._call_tool_async",
        "google.adk.flows.llm_flows.tools._live_caller._call_tool_async",
        "google.adk.flows.llm_flows.tools._live_caller._call_tool_in_thread_pool",
        "google.adk.flows.llm_flows.extensions._code_execution._run_pre_processor",
        "google.adk.flows.llm_flows.extensions._code_execution._run_post_processor",
    ],
    "crewai": [
        "crewai.hooks.tool_hooks.run_before_tool_call_hooks",
        "crewai.agents.agent_executor.run_before_tool_call_hooks",
        "crewai.utilities.tool_utils.run_before_tool_call_hooks",
        "BaseLLM._handle_tool_execution",
        "LLM._handle_tool_call",
    ],
}
"""The functions of the locked versions that execute tools."""


@pytest.mark.parametrize(("name", "variant"), [(name, one) for name, some in LATE.items() for one in some])
def test_agent_that_a_tool_gets_when_it_runs_is_refused(name: str, variant: str) -> None:
    played = play(name, folder="late_agents")["played"][variant]
    assert [args["to"] for _, args in played["asked"]] == ["ann"]
    check_refused(name, variant, played)


@pytest.mark.parametrize(
    ("name", "variant"), [(name, one) for name, some in LATE.items() for one in some if one not in WITH_CONTEXT]
)
def test_agent_that_a_tool_of_our_runner_gets_is_refused(name: str, variant: str) -> None:
    check_refused(name, variant, play(name, folder="late_agents")["own"][variant])


def check_refused(name: str, variant: str, played: dict[str, Any]) -> None:
    assert played["ran"] == []
    text = played["result"]["text"]
    assert TOOLS.get((name, variant), "send_money") in text
    assert f"was called inside {variant} without review, so it did not run." in text


@pytest.mark.parametrize("name", LATE)
def test_refusal_of_an_agent_in_a_tool_names_it(name: str) -> None:
    text = play(name, folder="late_agents")["played"]["built"]["result"]["text"]
    nameless = ("parsimony", "agent_framework")  # their tools do not say whose they are
    owner = "an agent" if name in nameless else "the agent 'payer'"
    assert f"It belongs to {owner}, which no gate has seen." in text.replace("\\", "")
    assert "Give its tools to the gated agent 'bot'" in text.replace("\\", "")


@pytest.mark.parametrize("runner", ["played", "own"])
@pytest.mark.parametrize(("name", "variant"), [(name, one) for name, some in ALLOWED.items() for one in some])
def test_gated_calls_inside_a_tool_run(name: str, variant: str, runner: str) -> None:
    played = play(name, folder="late_agents")[runner][variant]
    assert played["ran"] == ["ann"]
    assert "sent to ann" in played["result"]["text"]


@pytest.mark.parametrize("name", LATE)
def test_ungated_agent_beside_a_gated_run_keeps_running(name: str) -> None:
    assert play(name, folder="late_agents")["beside"] == ["ann"]


@pytest.mark.parametrize("name", LATE)
def test_guards_are_where_the_framework_executes_tools(name: str) -> None:
    assert play(name, folder="late_agents")["guarded"] == GUARDED[name]


@pytest.mark.parametrize("name", LATE)
def test_gate_refuses_a_framework_that_executes_tools_elsewhere(name: str) -> None:
    changed = play(name, folder="late_agents")["changed"]
    assert changed.startswith("Sayso does not know where ")
    assert changed.endswith("Install a version that Sayso's extras allow.")


def test_langgraph_node_runs_the_call_that_was_accepted_once() -> None:
    played = play("langgraph", folder="late_agents")["inbox"]
    assert (played["accepted"]["ran"], played["accepted"]["result"]["text"]) == (["ann"], "sent to ann")
    assert played["accepted_twice"]["ran"] == ["ann"]
    assert "inside the run of the gated agent 'bot' without review" in played["accepted_twice"]["error"]


@pytest.mark.parametrize(("name", "said"), [("autogen", "other"), ("google_adk", "spoken")])
def test_handoff_between_agents_without_tools_runs_inside_a_tool(name: str, said: str) -> None:
    assert said in play(name, folder="late_agents")["played"]["hand_off"]["result"]["text"].split()


@pytest.mark.parametrize("name", LATE)
def test_framework_that_a_tool_imports_is_guarded_at_once(name: str) -> None:
    played = play(name, "imports", "late_agents")["own"]["imported"]
    assert played["ran"] == []
    assert "send_money was called inside imported without review" in played["result"]["text"]
