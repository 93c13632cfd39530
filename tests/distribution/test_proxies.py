"""Tests of the example configurations of proxies, each by its own proxy."""

import subprocess
from pathlib import Path

import pytest

from tests.distribution.proxies import PROXIES, Proxy


@pytest.mark.parametrize("proxy", PROXIES, ids=lambda proxy: proxy.name)
def test_example_of_a_proxy_is_valid(proxy: Proxy, tmp_path: Path) -> None:
    command = proxy.command(proxy.check, proxy.write(tmp_path, 20_443, (20_001, 20_002)))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
