"""Drive the latest thread of a LangGraph bot past its interrupt, as nobody should who has not asked Sayso."""

import asyncio
import importlib
import sys
from typing import Any

from langgraph.types import Command

ANSWERS: dict[str, Any] = {
    "batched": {"decisions": [{"type": "reject", "message": "A stranger says no."}]},
    "per_call": {"type": "reject", "message": "A stranger says no."},
    "inbox": [{"type": "ignore", "args": None}],
}


async def main() -> None:
    """Answer the interrupt that waits."""
    module = sys.argv[1]
    framework = importlib.import_module(module).bot.framework
    answer = next(one for name, one in ANSWERS.items() if module.endswith(name))
    async with framework.checkpointer() as saver:
        latest = await anext(saver.alist(None, limit=1))
    config = {"configurable": {"thread_id": latest.config["configurable"]["thread_id"]}}
    async with framework._graph() as graph:
        await graph.ainvoke(Command(resume=answer), config)
        assert (await graph.aget_state(config)).interrupts


if __name__ == "__main__":
    asyncio.run(main())
