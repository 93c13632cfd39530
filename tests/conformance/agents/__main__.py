"""Run one process of an agent: `start` runs until it pauses or ends, `serve` receives and resumes."""

import asyncio
import importlib
import sys
from contextlib import AsyncExitStack
from typing import Any

import uvicorn
from agentapprovalprotocol import AsyncClient, Receiver

from tests.conformance.agents.places import Place


async def serve(agent: Any, place: Place) -> None:
    """Receive messages at https://localhost; the run is resumed with the credential known when one comes."""
    async with AsyncExitStack() as stack:

        async def resume(handle: Any, request: Any) -> None:
            if not hasattr(resume, "go_on"):
                resume.go_on = await stack.enter_async_context(agent.resuming(Place.read(place.folder)))
            await resume.go_on(handle, request)
            with place.path("resumes").open("a") as file:
                file.write(request.id + "\n")

        receiver = Receiver(
            secret=place.secret,
            registration_id=place.registration_id,
            client=lambda: AsyncClient(place.base_url, Place.read(place.folder).token),
            resumers={agent.FRAMEWORK: resume},
        )
        config = uvicorn.Config(
            receiver.asgi(),
            port=place.port,
            ssl_certfile=place.certificate,
            ssl_keyfile=place.certificate,
            log_level="warning",
            lifespan="off",
        )
        await uvicorn.Server(config).serve()


def main() -> None:
    """Do what the command line says: the agent, the folder, what to do, and how to wait."""
    name, folder, what, *mode = sys.argv[1:]
    agent = importlib.import_module(f"tests.conformance.agents.{name}_agent")
    place = Place.read(folder)
    asyncio.run(serve(agent, place) if what == "serve" else agent.start(place, *mode))


if __name__ == "__main__":
    main()
