"""Tests of the quick starts in `docs/frameworks.md`."""

import re
from pathlib import Path

import pytest

from demo.stacks import running_stack
from sayso.core.records.suspensions import RunStatus
from service.core.settings import CHECKOUT
from tests.frameworks.conftest import CHOSEN
from tests.frameworks.installations import Installation, write_script
from tests.frameworks.kinds import Kind
from tests.frameworks.test_conformance import decide, find_suspensions, money

PAGE = (CHECKOUT / "docs" / "frameworks.md").read_text(encoding="utf-8")
CONTRACTS = CHECKOUT / "tests" / "frameworks" / "contracts"
HEADINGS = {
    "pydantic_ai": "Pydantic AI",
    "openai_agents": "OpenAI Agents",
    "agent_framework": "Agent Framework",
    "langgraph_batched": "LangChain and LangGraph",
    "autogen": "AutoGen",
    "google_adk": "Google ADK",
    "crewai": "CrewAI",
    "afk": "AFK",
    "parsimony": "parsimony-agents",
}
MODELS = {
    "pydantic_ai": "from tests.frameworks.bots.pydantic_ai import play\nmodel = FunctionModel(play)",
    "openai_agents": "from tests.frameworks.bots.openai_agents import ScriptedModel\nmodel = ScriptedModel()",
    "agent_framework": "from tests.frameworks.bots.agent_framework import ScriptedModel\nmodel = ScriptedModel()",
    "langgraph_batched": "from tests.frameworks.bots.langgraph import ScriptedModel\nmodel = ScriptedModel()",
    "autogen": "from tests.frameworks.bots.autogen import ScriptedModel\nmodel = ScriptedModel()",
    "crewai": "from tests.frameworks.bots.crewai import ScriptedModel\nmodel = ScriptedModel(model='player')",
    "google_adk": "from tests.frameworks.bots.google_adk import ScriptedModel\nmodel = ScriptedModel()",
    "afk": "from tests.frameworks.bots.afk import PayArgs as SendMoney, ScriptedModel\nmodel = ScriptedModel()",
    "parsimony": "import tests.frameworks.bots.parsimony\nmodel = 'player/script'",
}
pytestmark = pytest.mark.timeout(300)
SHOWN = [one for one in CHOSEN if one.name in HEADINGS]


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.name)
async def test_quick_start_suspends_and_resumes(kind: Kind, tmp_path: Path) -> None:
    written = re.search(rf"^### {HEADINGS[kind.name]}\n\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert written is not None
    assert len([line for line in written[1].splitlines() if line.strip()]) <= 15
    (tmp_path / "bot.py").write_text(written[1])
    models = f"from pydantic_ai.models.function import FunctionModel\n{MODELS[kind.name]}\n"
    (tmp_path / "models.py").write_text(models if kind.name == "pydantic_ai" else MODELS[kind.name])
    environ = {
        "SAYSO_AGENTS": "bot:bot",
        "SAYSO_WORKERS": "1",
        "SAYSO_MODEL_URL": "http://127.0.0.1:9/v1",
        "PYTHONPATH": f"{tmp_path}:{CONTRACTS}",
        "BOT_HOME": str(tmp_path),
        "CREWAI_DISABLE_TELEMETRY": "true",
    }
    with running_stack(tmp_path / "home", environ, python=str(kind.python)) as stack:
        async with Installation(kind, stack, tmp_path).people() as (agent, reviewer):
            run = await agent.start_run("bot", write_script([money("ann", 7)]), "Quick start", key="quick")
            (suspension,) = await find_suspensions(agent, run.id, 1)
            await decide(reviewer, suspension, {"action": "approve"})
            ended = await agent.await_end(run.id)
            assert ended.status is RunStatus.COMPLETED
            assert "sent 7 to ann" in str(ended.result)
