"""Tests of the example configurations of proxies, each by its own proxy."""

import re
import subprocess
from pathlib import Path

import pytest

from service.edge.api.aap.requests import LONGEST_WAIT_S
from service.edge.api.dependencies import wait_of
from service.edge.api.routes import REVALIDATE_S
from service.edge.web.live import PING_S
from tests.distribution.proxies import PROXIES, Proxy
from tests.distribution.tools import DISTRIBUTION


@pytest.mark.parametrize("proxy", PROXIES, ids=lambda proxy: proxy.name)
def test_example_of_a_proxy_is_valid(proxy: Proxy, tmp_path: Path) -> None:
    command = proxy.command(proxy.check, proxy.write(tmp_path, 20_443, (20_001, 20_002)))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


async def test_long_polls_and_streams_write_before_a_proxy_gives_up() -> None:
    longest_s = max(await wait_of("60s"), LONGEST_WAIT_S)
    assert longest_s == 50
    assert max(PING_S, REVALIDATE_S) <= 15
    for proxy in PROXIES:
        text = (DISTRIBUTION / "proxies" / proxy.example).read_text(encoding="utf-8")
        (patience,) = re.findall(r"(?:read_timeout|timeout server) (\d+)s", text)
        assert int(patience) > longest_s
