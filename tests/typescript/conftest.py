"""A project with the packed client, compiled as a user's, and a whole Sayso beside it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.stacks import Stack
from sayso import __version__
from sayso.client import Client
from service.core.settings import CHECKOUT
from tests.journeys.stacks import quick_stack
from tests.pages import find_blocks, read_page

HERE = Path(__file__).parent
TARBALL = Path(sys.prefix) / "sdk" / f"sayso-client-{__version__}.tgz"
TOOLS = CHECKOUT / "distribution" / "typescript" / "node_modules"


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the compiled programs of `project`; their types are checked against the packed client."""
    folder = tmp_path_factory.mktemp("typescript") / "project"
    shutil.copytree(HERE / "project", folder)
    (page,) = find_blocks(read_page("start/typescript"), "ts")
    (folder / "page.ts").write_text(page)
    subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--offline", TARBALL], cwd=folder, check=True
    )
    types = ["--typeRoots", str(TOOLS / "@types")]
    subprocess.run(["node", TOOLS / "typescript" / "bin" / "tsc", *types], cwd=folder, check=True)
    return folder / "out"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A whole Sayso with the rules of `policy.yaml`."""
    with quick_stack(tmp_path_factory.mktemp("desk") / "home", SAYSO_POLICY=str(HERE / "policy.yaml")) as running:
        yield running


@pytest.fixture(scope="module")
def reviewer(stack: Stack) -> Iterator[Client]:
    """The signed-in admin, whose later requests outlast a restart."""
    with Client(stack.url, "-") as client:
        client.sign_in("admin", stack.admin_password)
        yield client


def environ_of(stack: Stack) -> dict[str, str]:
    """Return the environment of a program that uses the desk."""
    secrets = {"SAYSO_KEY": stack.agent_key, "SAYSO_ADMIN_PASSWORD": stack.admin_password}
    return {**os.environ, "SAYSO_URL": stack.url, **secrets}
