"""One file a way in which a run goes on, and the table that leads to it."""

from collections.abc import Awaitable, Callable, Mapping

from sayso.agents import Agent
from sayso.resumptions import Fence
from service.store.suspensions import Saved
from service.wiring import Wiring
from workers.resumers import calls, runner

Resumer = Callable[[Wiring, Mapping[str, Agent], Saved, Fence], Awaitable[None]]

RESUMERS: Mapping[str, Resumer] = {"runner": runner.resume, "calls": calls.resume}
"""`resume.resumer` of a suspension -> what drives it."""
