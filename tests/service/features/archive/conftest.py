"""Give tests of the archive a desk with a folder, and runs that ended."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file
from service.assembly import assemble
from service.core.settings import Settings
from service.core.wiring import Wiring


@pytest.fixture(params=["signed", "plain"])
def key_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """A key file, and none."""
    if request.param == "plain":
        return None
    create_key_file(tmp_path / "keys")
    return tmp_path / "keys"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, key_file: Path | None) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    archive = f"file://{tmp_path}/archive"
    return Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, key_file=key_file, archive=archive)


@pytest.fixture
async def wiring(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wired:
        yield wired
