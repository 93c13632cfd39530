"""One Sayso for all conformance tests, started with the checkout's Python."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.conformance.desks import Desk

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A receiver's certificate for this machine, and its certificate authority."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    own = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    return folder / "own.pem", folder / "authority.pem"


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[Desk]:
    """A running Sayso."""
    home = tmp_path_factory.mktemp("home")
    command = [str(CHECKOUT / ".venv/bin/python"), "-m", "tests.conformance.stack", str(home), str(certificate[1])]
    child = subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        stack = json.loads(child.stdout.readline())
        yield Desk(stack["url"], stack["password"])
    finally:
        child.stdin.close()
        child.wait(60)
