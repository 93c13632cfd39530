"""Resumes the latest run of a LangGraph or AFK bot without Sayso."""

import asyncio
import importlib
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sayso.adapters.afk.hooks import Hooks

ANSWERS: dict[str, Any] = {
    "batched": {"decisions": [{"type": "reject", "message": "A other_runner says no."}]},
    "per_call": {"type": "reject", "message": "A other_runner says no."},
    "inbox": [{"type": "ignore", "args": None}],
}


@asynccontextmanager
async def opened(rows: Path) -> AsyncIterator[Any]:
    """Yield AFK's store and close it. Its thread would keep the process alive."""
    from tests.frameworks.contracts import SQLiteMemoryStore

    memory = SQLiteMemoryStore(str(rows))
    await memory.setup()
    try:
        yield memory
    finally:
        await memory.close()


async def drive_afk(module: Any) -> None:
    """Deny the first turn, so that the second waits."""
    from tests.frameworks.contracts import ApprovalDecision, DeferredDecision

    class OtherHooks(Hooks):
        async def request_approval(self, request: Any) -> Any:
            if request.step == 1:
                return ApprovalDecision(kind="deny", reason="A other_runner says no.")
            return DeferredDecision(token=f"{request.run_id}:{request.step}:0")

    rows = await find_latest(module.ROWS)
    async with opened(module.ROWS) as memory:
        hooks = OtherHooks(memory)
        runner, agent = module.build(hooks)
        handle = await runner.resume_handle(agent, **rows)
        await hooks.stopped.wait()
        await asyncio.wait({handle._task})


async def find_latest(rows: Path) -> dict[str, str]:
    """Return the latest saved run."""
    with sqlite3.connect(rows) as db:
        (thread_id, key) = db.execute(
            "SELECT thread_id, key FROM state_kv WHERE key LIKE 'checkpoint:%:latest' ORDER BY updated_at DESC LIMIT 1"
        ).fetchone()
    return {"run_id": key.split(":")[1], "thread_id": thread_id}


async def main() -> None:
    """Answer the waiting interrupt."""
    module = sys.argv[1]
    imported = importlib.import_module(module)
    if module.endswith("afk"):
        await drive_afk(imported)
        return
    from langgraph.types import Command

    framework = imported.bot.framework
    answer = next(one for name, one in ANSWERS.items() if module.endswith(name))
    async with framework.checkpointer() as saver:
        latest = await anext(saver.alist(None, limit=1))
    config = {"configurable": {"thread_id": latest.config["configurable"]["thread_id"]}}
    async with framework._graph() as graph:
        await graph.ainvoke(Command(resume=answer), config)
        assert (await graph.aget_state(config)).interrupts


if __name__ == "__main__":
    asyncio.run(main())
