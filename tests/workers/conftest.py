"""What the tests of workers and of the clock share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.settings import Settings
from service.wiring import Wiring, wire


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Wiring]:
    """The parts of a process on a store of its own, where rules ask about every call."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    async with wire(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wired:
        yield wired
