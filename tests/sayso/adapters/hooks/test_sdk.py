"""The hook for the Claude Agent SDK; `make frameworks` runs it in the SDK itself."""

from typing import Any

import pytest

from sayso.adapters.hooks.judging import HookOptions
from sayso.adapters.hooks.sdk import make_hook
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk
from tests.sayso.adapters.hooks.payloads import claude, decision


async def answer(desk: InProcessDesk, payload: Any) -> tuple[str, str]:
    async with desk.async_client() as client:
        return decision(await make_hook(client, HookOptions(wait_s=1))(payload, "toolu_01", {}))


async def test_hook_answers_as_the_desk_decides(desk: InProcessDesk) -> None:
    desk.reviewer.denies(message="no")
    desk.reviewer.approves("Write")
    assert (await answer(desk, claude()))[0] == "deny"
    assert (await answer(desk, claude(tool_name="Write", tool_input={"file_path": "/a"})))[0] == "allow"


@pytest.mark.parametrize("payload", [{}, [], claude(tool_input=None), claude("\ud800")])
async def test_hook_denies_what_it_cannot_read(desk: InProcessDesk, payload: Any) -> None:
    verdict, reason = await answer(desk, payload)
    assert verdict == "deny"
    assert reason.startswith("Sayso blocked the call: ")
    assert not desk.records


async def test_hook_that_would_defer_is_refused(desk: InProcessDesk) -> None:
    async with desk.async_client() as client:
        with pytest.raises(InvalidInput, match="--defer in the settings"):
            make_hook(client, HookOptions(defers=True))


async def test_hook_denies_without_a_desk(desk: InProcessDesk) -> None:
    desk.drop_requests = 1_000
    assert "fails closed" in (await answer(desk, claude()))[1]
