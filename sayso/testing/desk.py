"""A desk in memory: real clients and real transitions, without a server and without waiting."""

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx
from pydantic import ValidationError

from sayso.client import AsyncClient, Client
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.engine import Policy
from sayso.errors import InvalidInput, SaysoError
from sayso.runner.agents import Agent
from sayso.runner.protocol import RunEnded
from sayso.runner.transcripts import RunState
from sayso.testing.api import InProcessApi
from sayso.testing.records import DeskRecords, ManualClock
from sayso.testing.requests import describe_misfit, describe_problem
from sayso.testing.runs import run_on_desk

URL = "http://desk.test"
"""The address of the desk in its links."""


class InProcessDesk(DeskRecords):
    """A desk in memory, with a clock, one reviewer, and clients. By default it asks about every call.

    A client that waits for a decision advances the clock to the end of its wait. `policy` is a `Policy`, the path of a
    rules file, or its text; a text of one line is a path.
    """

    def __init__(self, policy: Policy | Path | str | None = None, clock: ManualClock | None = None) -> None:
        super().__init__(policy, clock)
        self.drop_requests = 0
        """The number of requests to drop from now on."""

        self.drop_responses = 0
        """The number of requests to process from now on without a response."""

        self._api = InProcessApi(self)

    def client(self, agent: str = "agent") -> Client:
        """Return a client of the agent."""
        client = Client(URL, agent, transport=httpx.MockTransport(self.respond), sleep=self.clock.advance)
        client.retry_policy = replace(client.retry_policy, clock_ms=lambda: self.clock.now_ms)
        return client

    def async_client(self, agent: str = "agent") -> AsyncClient:
        """Return an asyncio client of the agent."""

        async def sleep(s: float) -> None:
            self.clock.advance(s)
            await asyncio.sleep(0)

        client = AsyncClient(URL, agent, transport=httpx.MockTransport(self.respond), sleep=sleep)
        client.retry_policy = replace(client.retry_policy, clock_ms=lambda: self.clock.now_ms)
        return client

    def run(self, agent: Agent, input_text: str, *, context: JsonObject | None = None) -> RunEnded[RunState]:
        """Run an agent to its end, and return the end with all events of the run.

        Items without an instruction of the reviewer wait for their fallback: the clock advances to the deadline.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.async_run(agent, input_text, context=context))
        raise InvalidInput("An event loop is running. Write: await desk.async_run(agent, input_text).")

    async def async_run(
        self, agent: Agent, input_text: str, *, context: JsonObject | None = None
    ) -> RunEnded[RunState]:
        """Do the same as `run`, with asyncio."""
        return await run_on_desk(self, agent, input_text, context or {})

    def respond(self, request: httpx.Request) -> httpx.Response:
        if self.drop_requests:
            self.drop_requests -= 1
            raise httpx.ConnectError("the desk is unavailable")
        try:
            response = httpx.Response(200, json=self._api.respond(request))
        except SaysoError as error:
            response = _refuse(error)
        except ValidationError as error:
            response = _refuse(describe_misfit(error))
        if self.drop_responses:
            self.drop_responses -= 1
            raise httpx.ReadTimeout("the response is lost")
        return response


def _refuse(error: SaysoError) -> httpx.Response:
    problem = describe_problem(error)
    return httpx.Response(problem.status, json=problem.document())
