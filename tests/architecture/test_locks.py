"""The lock files of the frameworks hold everything that Sayso itself needs."""

import re
import tomllib
from pathlib import Path

import pytest

from service.core.settings import CHECKOUT
from tests.frameworks.kinds import AGUI_AGENTS

LOCKS = sorted((CHECKOUT / "tests" / "frameworks" / "locks").glob("*.lock"))
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_framework_locks_hold_what_sayso_needs(lock: Path) -> None:
    needed = PROJECT["project"]["optional-dependencies"]["cli"]
    if lock.stem in AGUI_AGENTS:  # they stand behind a proxy of another environment
        needed = []
    elif lock.stem not in ("agui", "claude_agent_sdk", "mcp", "sdk"):
        needed = PROJECT["dependency-groups"]["server"]
    locked = set(re.findall(r"^([a-z0-9._-]+)==", lock.read_text(), re.MULTILINE))
    missing = [one for one in needed if re.split(r"[\[<>=]", one)[0] not in locked]
    assert missing == [], "run make lock, or uv pip compile without --upgrade"
