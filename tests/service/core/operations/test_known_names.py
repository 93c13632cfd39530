"""The names that a freeze can stop come from everywhere that a name is seen."""

from pathlib import Path

from sayso.core.records.tools import ToolDefinition
from sayso.runner.agents import AgentManifest
from service.core.operations.known_names import list_known
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.stories import asked
from tests.service.worlds import POLICY


async def test_names_come_from_agents_rules_keys_and_recent_runs(clean_store_url: str, tmp_path: Path) -> None:
    async with visit(settings_for(clean_store_url, tmp_path, POLICY)) as anna:
        parts = anna.wiring
        tools = (ToolDefinition(name="lookup"),)
        manifest = AgentManifest(
            name="clerk", description="", approval_denial_policy="continue", tools=tools, digest="0" * 64
        )
        await parts.runs.save_agent("clerk", manifest.model_dump_json())
        await parts.api_keys.create("night-bot")
        assert await list_known(parts, "tool") == ["lookup", "pay", "refund"], "one of them from a rule"
        await asked(parts, agent="support")
        assert await list_known(parts, "tool") == ["lookup", "pay", "refund", "refund_payment"]
        assert await list_known(parts, "agent") == ["clerk", "night-bot", "support"]
