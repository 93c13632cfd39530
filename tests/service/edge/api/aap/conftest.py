"""A provisioner, an instance, and a receiver whose certificate the processes trust."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.service.edge.api.aap.clients import InstanceClient, make_instance, make_provisioner
from tests.service.worlds import POLICY, World

RULES = """
  - id: harmless
    tool: look_up
    action: allow
  - id: ask-for-a-value
    tool: choose
    action: request_user_input
    ask: {prompt: Which one, target_arg: which}
  - id: in-a-hurry
    tool: hurry
    action: request_approval
    terms: {timeout_s: 60, start_by_s: 5}
  - id: nobody-there
    tool: unattended
    action: request_approval
    terms: {timeout_s: 60, unattended_approval: true, fallback: {action: approve}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings that let receivers be on this machine."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY + RULES)
    return Settings(redis_url=clean_store_url, policy=policy, aap_allow_loopback=True)


@pytest.fixture
async def provisioner(world: World) -> str:
    """Create a provisioner and return its token."""
    return await make_provisioner(world.wiring)


@pytest.fixture
async def bot(world: World, provisioner: str) -> AsyncIterator[InstanceClient]:
    """An instance without a delivery."""
    async with make_instance(world, provisioner, instance_name="bot") as instance:
        yield instance
