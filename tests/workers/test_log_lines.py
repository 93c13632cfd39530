"""Each process prints log lines of one schema alone, also of what fails in it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis
from rq import Queue
from rq.serializers import JSONSerializer

from demo.stacks import find_ports
from launch.checks import is_healthy
from launch.server import running_server
from launch.stops import wait_until
from service.assembly import assemble
from service.core.jobs import queue_of
from service.core.settings import CHECKOUT, Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.formats import check_format
from service.core.store.keys import TenantKeys
from tests.builders import make_agent, make_person
from tests.logs import CANARY, Cause, LogLine, read_lines
from tests.workers.test_main import started

KEYS = TenantKeys(TENANT)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
IDS = {"X-Request-ID": "req-1", "traceparent": f"00-{TRACE}-{SPAN}-01"}


class Output:
    """The output of a process, with what was read from it so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._read = process, ""

    def wait_for(self, event: str) -> None:
        """Read until a line of the event."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._read += line
            if f'"{event}"' in line:
                return
        pytest.fail(f"no line says {event}: {self._read}")

    def end(self) -> list[LogLine]:
        """Stop the process and return all its lines; it printed nothing else, and no canary."""
        self._process.terminate()
        rest, errors = self._process.communicate(timeout=60)
        assert errors == ""
        assert CANARY not in self._read + rest
        return read_lines(self._read + rest)


@contextmanager
def running(module: str, url: str, **settings: str) -> Iterator[Output]:
    """Run a process, and kill it in the end."""
    with started(module, url, **settings) as process:
        try:
            yield Output(process)
        finally:
            process.kill()


def of_event(lines: list[LogLine], event: str) -> LogLine:
    """Return the first line of an event."""
    return next(line for line in lines if line.event == event)


async def test_service_logs_a_failed_request_in_one_schema(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        await check_format(clean_store_url)
        token = await make_person(wiring, "root", "reviewer", "admin")
    port = find_ports()
    with running("service", clean_store_url, port=str(port)) as output, Redis.from_url(clean_store_url) as redis:
        assert wait_until(lambda: is_healthy("127.0.0.1", port), 60)
        redis.hset(KEYS.used, "key", CANARY)  # not a time
        headers = {"Authorization": f"Bearer {token}", **IDS}
        async with httpx.AsyncClient(headers=headers) as client:
            answer = await client.get(f"http://127.0.0.1:{port}/api/v1/keys")
        lines = output.end()
    assert answer.status_code == 500
    failed = of_event(lines, "unexpected error")
    assert (failed.error, failed.process, failed.level) == ("ValueError", "service", "error")
    assert failed.fact("error_id") == answer.json()["error_id"]
    assert failed.frames is not None
    assert failed.frames[-1].startswith("service.core.store.")
    for line in (failed, of_event(lines, "request")):
        assert (line.request_id, line.trace_id, line.span_id) == ("req-1", TRACE, SPAN)
    assert "uvicorn.error" in {line.logger for line in lines}


async def test_service_logs_an_outage_without_abandoned_tasks(tmp_path: Path) -> None:
    port = find_ports()
    with ExitStack() as at_exit:
        with running_server(tmp_path / "store") as url:
            async with assemble(Settings(redis_url=url)) as wiring:
                await check_format(url)
                key = await make_agent(wiring, "demo")
            output = at_exit.enter_context(running("service", url, port=str(port)))
            assert wait_until(lambda: is_healthy("127.0.0.1", port), 60)
        output.wait_for("store_away")
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
            answer = await client.get(f"http://127.0.0.1:{port}/api/v1/runs")
        assert answer.status_code == 503
        lines = output.end()
    assert "asyncio" not in {line.logger for line in lines}


def test_worker_logs_failed_jobs_and_faults_of_its_agents_in_one_schema(clean_store_url: str, tmp_path: Path) -> None:
    agents = "tests.workers.faulty_agents:agent"
    with (
        running("workers", clean_store_url, agents=agents, home=str(tmp_path), drain_window_s="1") as output,
        Redis.from_url(clean_store_url) as redis,
    ):
        output.wait_for("worker_started")
        Queue(queue_of(TENANT), connection=redis, serializer=JSONSerializer).enqueue(CANARY)
        output.wait_for("job_failed")
        lines = output.end()
    assert {line.process for line in lines} == {"worker"}
    failed = of_event(lines, "job_failed")
    assert (failed.error, failed.level) == ("UnknownJob", "error")
    abandoned = of_event(lines, "Task exception was never retrieved")
    assert (abandoned.logger, abandoned.error) == ("asyncio", "ValueError")
    assert abandoned.frames is not None
    assert re.fullmatch(r"tests\.workers\.faulty_agents:\d+ _abandon_tasks\.<locals>\.fail", abandoned.frames[-1])
    assert [line.error for line in lines if line.event == "uncaught"] == ["ValueError"] * 2, "of a thread and `__del__`"
    assert any("UserWarning: This warning is printed." in line.event for line in lines)


async def test_clock_logs_a_failed_tick_in_one_schema(clean_store_url: str, tmp_path: Path) -> None:
    await check_format(clean_store_url)
    with (
        running("workers.clock", clean_store_url, home=str(tmp_path)) as output,
        Redis.from_url(clean_store_url) as redis,
    ):
        output.wait_for("clock_started")
        redis.set(KEYS.schedule, CANARY)  # not a sorted set
        output.wait_for("tick_failed")
        lines = output.end()
    failed = of_event(lines, "tick_failed")
    assert (failed.process, failed.level) == ("clock", "warning")
    assert failed.error is not None
    assert failed.error.startswith("Unavailable: The store refuses what Sayso asks of it: WRONGTYPE")
    assert failed.causes is not None
    assert "ResponseError" in {cause.error for cause in failed.causes}


@pytest.mark.parametrize("module", ["service", "workers", "workers.clock", "launch.watched"])
def test_wrong_setting_is_a_log_line(module: str) -> None:
    forged = 'soon\n{"event": "all is well"}'
    with running(module, "unix:///nowhere/store.sock?db=0", lease_s=forged, rules_policy="x") as output:
        output.wait_for("not_started")
        (line,) = output.end()
    assert line.error is not None
    assert "SAYSO_LEASE_S: " in line.error


@pytest.mark.parametrize("module", ["service", "workers", "workers.clock"])
def test_unknown_setting_is_a_log_line(module: str, clean_store_url: str, tmp_path: Path) -> None:
    settings = {"rules_policy": "x", "policy": str(tmp_path / "absent.yaml"), "home": str(tmp_path)}
    with running(module, clean_store_url, **settings) as output:
        output.wait_for("not_started")
        lines = output.end()
    reason: Any = of_event(lines, "setting_unknown").fact("reason")
    assert "did you mean SAYSO_POLICY?" in reason
    assert "the file cannot be read" in str(of_event(lines, "not_started").error)


SCRIPT = f"""
import logging
from service.core.logs import configure_logs
configure_logs("service")
logging.getLogger("other").error("%s and %s", 1)
logging.getLogger("other").error("Failed\\nTraceback (most recent call last):\\nValueError: {CANARY}")
logging.getLogger("other").error("Traceback (most recent call last):\\n  ...\\nValueError: {CANARY}\\n")
def read():
    open("/nowhere")
try:
    try:
        read()
    except OSError as error:
        raise ExceptionGroup("{CANARY}", [KeyError("{CANARY}")]) from error
except ExceptionGroup as error:
    raise TypeError("{CANARY}") from error
"""


def test_uncaught_exception_is_a_log_line_with_its_causes() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert CANARY not in ended.stdout
    lines = read_lines(ended.stdout)
    assert [line.event for line in lines] == ["line_not_written", "Failed", "Traceback of ValueError", "uncaught"]
    assert lines[-1].error == "TypeError"
    assert [cause.error for cause in lines[-1].causes or ()] == [
        "ExceptionGroup",
        "FileNotFoundError: No such file or directory",
        "KeyError",
    ]


def test_interrupt_is_no_traceback() -> None:
    script = "from service.core.logs import configure_logs\nconfigure_logs('clock')\nraise KeyboardInterrupt"
    ended = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (ended.returncode in (130, -signal.SIGINT), ended.stdout, ended.stderr) == (True, "", "")


def test_documentation_names_each_field() -> None:
    text = (CHECKOUT / "docs" / "operations.md").read_text(encoding="utf-8")
    fields = {*LogLine.model_fields, *Cause.model_fields}
    assert [name for name in fields if f"`{name}`" not in text] == []
