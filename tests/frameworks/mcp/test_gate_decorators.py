"""Tests of gated functions as tools of an MCP server."""

import json
import subprocess

from service.core.settings import CHECKOUT
from tests.frameworks.kinds import MCP, find_python


def test_gated_tools_of_an_mcp_server_are_asked_about_and_run() -> None:
    command = [str(find_python(MCP)), "-m", "tests.frameworks.decorators.mcp"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results.keys() == {"def", "async def", "method", "async method", "with context"}
    for kind in results.values():
        assert kind["approves"] == {"ran": ["ann"], "asked": 1, "text": "sent to ann"}
        assert (kind["denies"]["ran"], kind["denies"]["asked"]) == ([], 1)
