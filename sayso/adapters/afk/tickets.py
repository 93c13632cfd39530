"""Settles AFK's background tickets, whose calls a reviewer decides while the run continues, in any process."""

from typing import Any

from sayso.adapters.afk.desk import Desk
from sayso.adapters.afk.tools import AfkCall
from sayso.errors import SaysoError
from sayso.runner.tools import plain_json

_SUSPENSION_PREFIX = "sus_"


async def settle_tickets(desk: Desk, runner: Any, *, thread_id: str, run_id: str, wait_s: float = 0) -> int:
    """Run approved calls once, resolve every decided ticket in AFK, and return how many still wait.

    Waits up to `wait_s` for each. Raises the desk's error if it is unreachable; call again then.
    """
    waiting = 0
    for row in await runner.list_background_tools(thread_id=thread_id, run_id=run_id):
        tool = desk.tools.get(row["tool_name"])
        if tool is None or not str(row["ticket_id"]).startswith(_SUSPENSION_PREFIX):
            continue
        suspension = await desk.client.wait(row["ticket_id"], wait_s)
        if suspension.pending:
            waiting += 1
            continue
        args = suspension.items[0].tool.args
        result = await desk.run(AfkCall(tool, args), desk.build_call(tool, args, row["resume_hint"]))
        ticket = {"thread_id": thread_id, "run_id": run_id, "ticket_id": suspension.id, "tool_name": row["tool_name"]}
        if result.success:
            try:
                output = plain_json(result.output)
            except SaysoError as error:
                output = error.message
            await runner.resolve_background_tool(**ticket, output=output)
        else:
            await runner.fail_background_tool(**ticket, error=result.error_message)
    return waiting
