"""Settle the background tickets of AFK runs: calls that a person decides on while the run goes on.

Any process that reaches AFK's memory store may do it, also after the one with the run has ended.
"""

from typing import Any

from pydantic import JsonValue

from sayso.adapters.afk.desk import Desk
from sayso.adapters.afk.tools import Called
from sayso.errors import SaysoError
from sayso.runner.tools import plain_json

_OURS = "sus_"


async def settle_tickets(desk: Desk, runner: Any, *, thread_id: str, run_id: str, wait_s: float = 0) -> int:
    """Run what was approved, once, and tell AFK of every ticket that is decided; return how many still wait.

    Each is waited for up to `wait_s`. Raises what the desk answers when it cannot be reached; then try again.
    """
    left = 0
    for row in await runner.list_background_tools(thread_id=thread_id, run_id=run_id):
        tool = desk.tools.get(row["tool_name"])
        if tool is None or not str(row["ticket_id"]).startswith(_OURS):
            continue
        found = await desk.client.wait(row["ticket_id"], wait_s)
        if found.pending:
            left += 1
            continue
        asked = found.items[0].tool.args
        result = await desk.run(Called(tool, asked), desk.want(tool, asked, row["resume_hint"]))
        ticket = {"thread_id": thread_id, "run_id": run_id, "ticket_id": found.id, "tool_name": row["tool_name"]}
        if result.success:
            await runner.resolve_background_tool(**ticket, output=_plain(result.output))
        else:
            await runner.fail_background_tool(**ticket, error=result.error_message)
    return left


def _plain(output: Any) -> JsonValue:
    try:
        return plain_json(output)
    except SaysoError as error:
        return error.message
