"""The extension for tasks in the official client: it takes tasks, and polls them to their end."""

import asyncio
from typing import Any, Literal

import mcp_types as types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_S = 0.05


class TaskState(types.Result):
    """What `tasks/get` returns, and what a call returns instead of its result."""

    task_id: str | None = None
    status: str | None = None
    status_message: str | None = None
    created_at: str | None = None
    last_updated_at: str | None = None
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    result_type: str | None = None


class CreatedTask(TaskState):
    """A task instead of a result."""

    result_type: Literal["task"] = "task"


class TaskRequest(types.Request[types.GetTaskRequestParams, str]):
    """A request about one task."""

    name_param = "taskId"


async def read_task(session: ClientSession, task_id: str, method: str = "tasks/get") -> TaskState:
    """Send one request about a task."""
    params = types.GetTaskRequestParams(task_id=task_id)
    state: TaskState = await session.send_request(TaskRequest(method=method, params=params), TaskState)
    return state


async def finish_task(created: CreatedTask, context: ClaimContext) -> types.CallToolResult:
    """Poll a task until it is completed, and return its result."""
    assert created.task_id is not None
    state: TaskState = created
    while state.status == "working":
        await asyncio.sleep(POLL_S)
        state = await read_task(context.session, created.task_id)
    return types.CallToolResult.model_validate(state.result)


class TakesTasks(ClientExtension):
    """Names the extension with each request, and takes tasks."""

    identifier = EXTENSION

    def claims(self) -> list[ResultClaim[CreatedTask]]:
        """Return the claim of the result type."""
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=finish_task)]
