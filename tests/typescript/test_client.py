"""The packed TypeScript client: its own suite, kills of the desk and of the program, and what it shares with Python."""

import html
import json
import os
import re
import shlex
import subprocess
import tarfile
from pathlib import Path

import httpx
import pytest

from demo.stacks import Stack
from launch.stops import wait_until
from sayso import gate
from sayso.client import Client
from sayso.core.canonical_json import JsonObject
from sayso.core.problems import PROBLEM_TYPES
from sayso.wire.suspensions import SuspensionView
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, await_restart, kill, kill_process
from tests.typescript.conftest import TARBALL, environ_of

MODES = ["", "idempotent", "ask"]


def start(project: Path, stack: Stack, *args: str | Path, program: str = "script.js") -> subprocess.Popen[str]:
    command = ["node", str(project / program), *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environ_of(stack), text=True, stdout=pipe, stderr=pipe)


def end_of(script: subprocess.Popen[str]) -> str:
    out, err = script.communicate(timeout=PATIENCE_S)
    assert script.returncode == 0, err
    return out.strip()


def await_pending(client: Client) -> SuspensionView:
    assert wait_until(lambda: bool(client.waiting().suspensions), PATIENCE_S)
    (waiting,) = client.waiting().suspensions
    return waiting


def read(paid: Path) -> list[str]:
    return paid.read_text().splitlines() if paid.exists() else []


def test_node_suite_passes(project: Path, stack: Stack) -> None:
    files = [str(path) for path in sorted(project.glob("*.test.js"))]
    done = subprocess.run(
        ["node", "--test", "--test-reporter", "spec", *files],
        env=environ_of(stack),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_error_classes_are_those_of_the_desk(project: Path) -> None:
    done = subprocess.run(["node", project / "codes.js"], capture_output=True, text=True, check=True)
    parents = {row.slug: [row.slug, kind.__name__, kind.__mro__[1].__name__] for kind, row in PROBLEM_TYPES.items()}
    parents["something-broke"][2] = "Error"  # JavaScript's own
    assert sorted(json.loads(done.stdout)) == sorted(parents.values())


def test_package_needs_no_other_and_holds_only_its_build() -> None:
    with tarfile.open(TARBALL) as archive:
        names = archive.getnames()
        manifest = archive.extractfile("package/package.json")
        assert manifest is not None
        package = json.load(manifest)
    sources = CHECKOUT / "distribution" / "typescript" / "src"
    assert f'VERSION = "{package["version"]}"' in (sources / "requests.ts").read_text()
    assert "dependencies" not in package
    assert {name.split("/")[1] for name in names} == {"dist", "package.json", "README.md"}


def test_client_is_installed_with_the_command_that_the_desk_shows(stack: Stack, tmp_path: Path) -> None:
    page = html.unescape(httpx.get(f"{stack.url}/docs").raise_for_status().text)
    (command,) = re.findall(r"npm install @sayso/client --@sayso:registry=[^<\s]+", page)
    (tmp_path / "package.json").write_text("{}")
    done = subprocess.run(shlex.split(command), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "node_modules" / "@sayso" / "client" / "dist" / "index.js").is_file()
    assert list(json.loads((tmp_path / "package.json").read_text())["dependencies"]) == ["@sayso/client"]


def test_program_of_the_page_pays_once_approved(project: Path, stack: Stack, reviewer: Client) -> None:
    script = start(project, stack, program="page.js")
    waiting = await_pending(reviewer)
    reviewer.decide(waiting.id, waiting.items[0], "approve")
    assert end_of(script) == "paid 250 for A-1001"


def test_waiting_program_survives_a_restart_of_the_service(
    project: Path, stack: Stack, reviewer: Client, tmp_path: Path
) -> None:
    paid = tmp_path / "paid"
    script = start(project, stack, paid, "restart")
    waiting = await_pending(reviewer)
    await_restart(stack, "service", kill(stack, "service"))
    reviewer.decide(waiting.id, reviewer.find(waiting.id).items[0], "approve")
    assert end_of(script) == "paid 250 for restart"
    assert read(paid) == ["restart 250"]


def test_call_asked_while_the_service_is_away_is_asked_once(
    project: Path, stack: Stack, reviewer: Client, tmp_path: Path
) -> None:
    paid = tmp_path / "paid"
    killed = kill(stack, "service")
    script = start(project, stack, paid, "away")
    await_restart(stack, "service", killed)
    waiting = await_pending(reviewer)
    reviewer.decide(waiting.id, waiting.items[0], "deny", message="No")
    assert "was denied by admin: No." in end_of(script)
    assert read(paid) == []


@pytest.mark.parametrize("action", ["approve", "edit", "deny"])
def test_killed_program_continues_under_its_key(
    project: Path, stack: Stack, reviewer: Client, tmp_path: Path, action: str
) -> None:
    paid = tmp_path / "paid"
    script = start(project, stack, paid, action)
    waiting = await_pending(reviewer)
    script.kill()
    script.communicate()
    args: JsonObject | None = {"order": action, "amount": 200} if action == "edit" else None
    reviewer.decide(waiting.id, waiting.items[0], "deny" if action == "deny" else "approve", args=args)
    results = {end_of(start(project, stack, paid, action)) for _ in range(2)}
    (result,) = results
    amount = {"approve": "250", "edit": "200"}.get(action)
    assert ("did not run" in result) if amount is None else (result == f"paid {amount} for {action}")
    assert read(paid) == ([] if amount is None else [f"{action} {amount}"])


@pytest.mark.parametrize("mode", MODES)
def test_program_killed_within_its_call_runs_again_only_if_allowed(
    project: Path, stack: Stack, reviewer: Client, tmp_path: Path, mode: str
) -> None:
    paid, fifo, order = tmp_path / "paid", tmp_path / "fifo", f"within-{mode}"
    os.mkfifo(fifo)
    script = start(project, stack, paid, order, mode, fifo)
    waiting = await_pending(reviewer)
    reviewer.decide(waiting.id, waiting.items[0], "approve")
    assert wait_until(lambda: bool(read(paid)), PATIENCE_S)
    kill_process(script.pid)
    script.communicate()
    again = start(project, stack, paid, order, mode)
    if mode == "ask":
        doubt = await_pending(reviewer)
        assert read(paid) == [f"{order} 250"]
        reviewer.decide(doubt.id, doubt.items[0], "value", value={"choice": "skip", "result": "paid by hand"})
    expected = {"": "InDoubt", "idempotent": f"paid 250 for {order}", "ask": "paid by hand"}
    assert end_of(again) == expected[mode]
    assert read(paid) == [f"{order} 250"] * (2 if mode == "idempotent" else 1)


def test_key_is_the_same_call_in_python(project: Path, stack: Stack, reviewer: Client, tmp_path: Path) -> None:
    script = start(project, stack, tmp_path / "paid", "shared")
    waiting = await_pending(reviewer)
    reviewer.decide(waiting.id, waiting.items[0], "approve")
    assert end_of(script) == "paid 250 for shared"

    @gate(client=Client(stack.url, stack.agent_key), key="refund-{order}")
    def refund(order: str, amount: int) -> str:
        raise AssertionError("it ran")

    assert refund("shared", 250) == "paid 250 for shared"
