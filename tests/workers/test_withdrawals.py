"""A worker starts nothing for a key that was revoked, and says on the run why it ended."""

import pytest

from sayso.core.records.suspensions import RunStatus
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn
from sayso.runner.tools import tool
from service.core.wiring import Wiring
from tests.builders import give_up, make_key, person
from tests.workers.runs import draining, start, trail, turn, until
from workers.resume import driving as resume

called: list[str] = []


@tool
def pay(order: str) -> str:
    """Pay for an order."""
    called.append(order)
    return "paid"


class RevokesFirst:
    """A model that revokes the key of its run before it calls a tool that the rules allow."""

    def __init__(self, wiring: Wiring, key_id: str) -> None:
        self._wiring = wiring
        self._key_id = key_id

    async def complete(self, messages: object, tools: object) -> ModelTurn:
        """Revoke the key, then call the tool."""
        await self._wiring.api_keys.revoke(self._key_id)
        await self._wiring.revocation_cache.find(fresh=True)
        return turn(("pay", '{"order": "A"}'))


async def test_key_revoked_during_a_drive_starts_no_call(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    called.clear()
    key_id = await make_key(wiring, "bot")
    model = RevokesFirst(wiring, key_id)
    monkeypatch.setitem(resume.agents, "p", Agent(name="p", instructions="x", tools=(pay,), model=model))
    async with draining(wiring):
        await start(wiring, "p")
        ended = await until(wiring, RunStatus.CANCELLED, RunStatus.COMPLETED, RunStatus.FAILED)
    assert (ended.status, called) == (RunStatus.CANCELLED, [])
    assert "was revoked" in (ended.error or "")
    assert "run_cancelled" in await trail(wiring)


async def test_revived_run_of_a_revoked_key_does_not_run(wiring: Wiring) -> None:
    key_id = await make_key(wiring, "bot")
    await start(wiring)
    run = await wiring.runs.read("run_x")
    found = await wiring.desk.suspensions.read(run.suspension_id)
    assert found.record is not None
    await give_up(wiring, found.record)
    await wiring.api_keys.revoke(key_id)
    await wiring.desk.revive(run.suspension_id, person("ada"))
    async with draining(wiring):
        await until(wiring, RunStatus.CANCELLED)
