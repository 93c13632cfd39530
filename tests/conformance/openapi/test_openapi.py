"""The OpenAPI files pass two validators, and a client generated from one starts a run."""

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conformance.desks import Desk

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
FILES = {"api": "/api/openapi.json", "aap": "/api/aap/openapi.json"}


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, desk: Desk, tmp_path: Path) -> Path:
    """Save one OpenAPI file of the running Sayso."""
    path = tmp_path / f"{request.param}.json"
    path.write_text(httpx.get(desk.url + FILES[request.param]).raise_for_status().text, encoding="utf-8")
    return path


@pytest.fixture
def generated(desk: Desk, tmp_path: Path) -> Iterator[Any]:
    """Return the package that openapi-python-client generates."""
    file, folder = tmp_path / "openapi.json", tmp_path / "generated"
    file.write_text(httpx.get(f"{desk.url}/api/openapi.json").raise_for_status().text, encoding="utf-8")
    run("openapi-python-client", "generate", "--path", str(file), "--output-path", str(folder), "--meta", "none")
    sys.path.insert(0, str(tmp_path))
    yield lambda name: importlib.import_module(f"generated.{name}")
    sys.path.remove(str(tmp_path))


def run(program: str, *args: str, **environ: str) -> None:
    """Run a program of this environment; a failure shows its output."""
    path = f"{BIN}:/usr/bin:/bin"
    done = subprocess.run(
        [str(BIN / program), *args],
        cwd=HERE,
        env={"PATH": path, "HOME": tempfile.gettempdir(), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_file_passes_openapi_spec_validator(file: Path) -> None:
    run("openapi-spec-validator", str(file))


def test_file_passes_redocly_with_valid_examples(file: Path) -> None:
    run("npx", "redocly", "lint", "--config", "redocly.yaml", str(file), REDOCLY_TELEMETRY="off")


def test_file_names_servers_and_the_security_of_each_operation(file: Path) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert document["servers"]
    assert all("security" in operation for operation in operations)


def test_generated_client_starts_a_run_and_reads_it(desk: Desk, generated: Any) -> None:
    key = desk.reviewer.post("/keys", json={"name": "generated", "kind": "agent"}).raise_for_status().json()["key"]
    client = generated("client").AuthenticatedClient(base_url=desk.url, token=key, raise_on_unexpected_status=True)
    body = generated("models").RunRequest(agent="demo", input_="Transfer $5000 from my checking to saving account.")
    started = generated("api.runs.start_run").sync(client=client, body=body)
    assert started.agent == "demo"
    assert generated("api.runs.get_run").sync(started.id, client=client).id == started.id
