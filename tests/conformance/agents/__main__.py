"""One process of an agent: `start` runs until the run is suspended or ends, `serve` receives messages and resumes."""

import asyncio
import importlib
import sys
from contextlib import AsyncExitStack
from typing import Any

import uvicorn
from agentapprovalprotocol import AsyncClient, Receiver

from tests.conformance.agents.workspaces import Workspace


async def serve(agent: Any, workspace: Workspace) -> None:
    """Receive messages at https://localhost and resume the run with the current credential."""
    async with AsyncExitStack() as stack:
        resumers: list[Any] = []  # made on the first message, whose credential is current

        async def resume(handle: Any, request: Any) -> None:
            if not resumers:
                resumers.append(await stack.enter_async_context(agent.resuming(Workspace.read(workspace.folder))))
            await resumers[0](handle, request)
            with workspace.path("resumes").open("a") as file:
                file.write(request.id + "\n")

        receiver = Receiver(
            secret=workspace.secret,
            registration_id=workspace.registration_id,
            client=lambda: AsyncClient(workspace.base_url, Workspace.read(workspace.folder).token),
            resumers={agent.FRAMEWORK: resume},
        )
        config = uvicorn.Config(
            receiver.asgi(),
            port=workspace.port,
            ssl_certfile=workspace.certificate,
            ssl_keyfile=workspace.certificate,
            log_level="warning",
            lifespan="off",
        )
        await uvicorn.Server(config).serve()


def main() -> None:
    """Run the command line: the agent, its folder, the command, and the waiting mode."""
    name, folder, what, *mode = sys.argv[1:]
    agent = importlib.import_module(f"tests.conformance.agents.{name}_agent")
    workspace = Workspace.read(folder)
    asyncio.run(serve(agent, workspace) if what == "serve" else agent.start(workspace, *mode))


if __name__ == "__main__":
    main()
