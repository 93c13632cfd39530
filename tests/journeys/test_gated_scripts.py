"""A script with a gated function, as its page shows it, across restarts."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.stacks import Stack
from launch.stops import wait_until
from sayso.client import Client
from sayso.wire.suspensions import SuspensionView
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, await_restart, kill, quick_stack

PAGE = (CHECKOUT / "docs" / "sdk.md").read_text()
QUICK_START = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]
SCRIPT = """
import sys
from sayso import gate

@gate(key="refund-{order}")
def refund(order: str, amount: float) -> str:
    with open(sys.argv[1], "a") as paid:
        print(order, amount, file=paid)
    return f"paid {amount:g} for {order}"

print(refund("A-1", 250.0))
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with quick_stack(tmp_path_factory.mktemp("gated") / "home") as running:
        yield running


def start(stack: Stack, script: str, *args: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "SAYSO_URL": stack.url, "SAYSO_KEY": stack.agent_key, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", script, *args]
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, env=environ, text=True, **streams)


def reviewer(stack: Stack) -> Client:
    client = Client(stack.url, "-")
    client.sign_in("admin", stack.admin_password)
    return client


def await_pending(client: Client) -> SuspensionView:
    assert wait_until(lambda: bool(client.waiting().suspensions), PATIENCE_S)
    (found,) = client.waiting().suspensions
    return found


def end_of(script: subprocess.Popen[str]) -> str:
    out, err = script.communicate(timeout=PATIENCE_S)
    assert script.returncode == 0, err
    return out.strip()


def test_sdk_page_example_has_fifteen_lines_and_runs(stack: Stack) -> None:
    assert len(QUICK_START.splitlines()) <= 15
    script = start(stack, QUICK_START)
    environ = {**os.environ, "SAYSO_URL": stack.url, "PYTHONPATH": str(CHECKOUT)}
    with reviewer(stack) as client:
        waiting = await_pending(client)
        command = [sys.executable, "-m", "sayso", "approve", waiting.id, "--yes"]
        done = subprocess.run(command, env={**environ, "SAYSO_KEY": str(client.key)}, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    assert end_of(script) == "paid 250.0 for A-1001"


def test_waiting_script_survives_a_service_restart(stack: Stack, tmp_path: Path) -> None:
    paid = tmp_path / "paid"
    script = start(stack, SCRIPT.replace("refund-{order}", "outlives-{order}"), str(paid))
    with reviewer(stack) as client:
        waiting = await_pending(client)
        await_restart(stack, "service", kill(stack, "service"))
        client.decide(waiting.id, client.find(waiting.id).items[0], "approve")
    assert end_of(script) == "paid 250 for A-1"
    assert paid.read_text().splitlines() == ["A-1 250.0"]


def test_killed_script_continues_after_a_restart(stack: Stack, tmp_path: Path) -> None:
    paid = tmp_path / "paid"
    first = start(stack, SCRIPT, str(paid))
    with reviewer(stack) as client:
        waiting = await_pending(client)
        first.kill()
        first.wait()
        client.decide(waiting.id, waiting.items[0], "approve", args={"order": "A-1", "amount": 200.0})
        assert end_of(start(stack, SCRIPT, str(paid))) == "paid 200 for A-1"
        assert end_of(start(stack, SCRIPT, str(paid))) == "paid 200 for A-1", "what ran is not run again"
        assert client.await_run(waiting.run.id, 10).status == "completed"
    assert paid.read_text().splitlines() == ["A-1 200.0"]


SLOW = """
import sys
from pathlib import Path
from sayso import gate

@gate(key="report-{month}")
def write_report(month: str) -> str:
    with open(sys.argv[1], "a") as written:
        print(month, file=written)
    Path(sys.argv[2]).read_text()
    return f"written for {month}"

print(write_report(sys.argv[3]))
"""


def await_line(script: subprocess.Popen[str], text: str) -> None:
    """Read what a script prints to standard error up to a line with this text."""
    assert script.stderr is not None
    assert any(text in line for line in script.stderr)


def start_two(stack: Stack, *args: str) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """Start a call that waits for a pipe, and the same call in a second process, until that waits for the first."""
    os.mkfifo(args[1])
    first = start(stack, SLOW, *args)
    with reviewer(stack) as client:
        waiting = await_pending(client)
        client.decide(waiting.id, waiting.items[0], "approve")
    assert wait_until(lambda: args[2] in read_lines(Path(args[0])), PATIENCE_S)
    second = start(stack, SLOW, *args)
    await_line(second, "runs under the same key since")
    return first, second


def read_lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_second_process_waits_for_the_result_of_the_first(stack: Stack, tmp_path: Path) -> None:
    written, goes_on = tmp_path / "written", tmp_path / "goes on"
    first, second = start_two(stack, str(written), str(goes_on), "May")
    assert second.poll() is None
    goes_on.write_text("")
    assert end_of(first) == end_of(second) == "written for May"
    assert read_lines(written) == ["May"]


def test_second_process_is_in_doubt_once_the_first_is_lost(stack: Stack, tmp_path: Path) -> None:
    written, goes_on = tmp_path / "written", tmp_path / "goes on"
    first, second = start_two(stack, str(written), str(goes_on), "June")
    first.kill()
    first.wait()
    for late in (second, start(stack, SLOW, str(written), str(goes_on), "June")):
        _, err = late.communicate(timeout=PATIENCE_S)
        assert late.returncode == 1
        assert "InDoubt: write_report was started at" in err
    assert read_lines(written) == ["June"]


ASYNC = """
import asyncio, sys
from sayso import gate

@gate
def count(things: int) -> str:
    return f"counted {things}"

async def main() -> None:
    counting = asyncio.create_task(count.as_async(7))
    print("heard", await asyncio.to_thread(sys.stdin.readline), end="", flush=True)
    print(await counting)

asyncio.run(main())
"""


def test_event_loop_runs_while_a_plain_def_as_async_waits(stack: Stack) -> None:
    script = start(stack, ASYNC)
    assert script.stdin is not None
    assert script.stdout is not None
    with reviewer(stack) as client:
        waiting = await_pending(client)
        script.stdin.write("beat\n")
        script.stdin.flush()
        assert script.stdout.readline() == "heard beat\n"
        client.decide(waiting.id, waiting.items[0], "approve")
    assert end_of(script) == "counted 7"
