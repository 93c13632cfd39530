"""Runs the AFK bot with a desk, or resumes its latest run: `python -m tests.frameworks.run_afk_desk`."""

import asyncio
import json
import os
import sys

from sayso.adapters.afk.desk import Desk
from sayso.client import AsyncClient
from tests.frameworks.bots.afk import ROWS, ScriptedModel, look_up, send_mail, send_money
from tests.frameworks.contracts import Agent, Runner, RunnerConfig
from tests.frameworks.resume_elsewhere import find_latest, opened


async def main() -> None:
    """Print the result and the process id."""
    url, key, *resumed = sys.argv[1:]
    async with AsyncClient(url, key) as client, opened(ROWS) as memory:
        desk = Desk(client)
        tools = desk.gate([send_money, send_mail, look_up])
        agent = Agent(name="bot", model=ScriptedModel(), instructions="Play.", tools=tools, policy_roles=[desk.role])
        config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
        runner = Runner(memory_store=memory, interaction_provider=desk.provider, config=config)
        if resumed:
            result = await runner.resume(agent, **await find_latest(ROWS))
        else:
            result = await runner.run(agent, user_message=sys.stdin.read())
        print(json.dumps({"text": result.final_text, "pid": os.getpid()}))


if __name__ == "__main__":
    asyncio.run(main())
