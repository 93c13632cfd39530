"""Untrusted expressions are evaluated in a process with limits."""

import os
from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput, InvalidJson
from service.core.policy.sandbox import Overrun, Sandbox
from tests.service.hostiles import RECURSIVE, deep


def fit(schema: dict[str, Any], value: Any) -> dict[str, Any]:
    return {"kind": "fit", "schema": schema, "value": value, "name": "args", "formats": False}


def test_an_evaluation_beyond_its_time_is_killed_and_the_next_one_runs() -> None:
    sandbox = Sandbox(places=1, limit_s=1)
    with pytest.raises(Overrun, match="and was ended"):
        sandbox.run(fit(RECURSIVE, deep(24)))
    assert sandbox.run(fit({"type": "string"}, 1)) == {"problems": ['args: 1 is not of type "string"']}
    sandbox.close()


def test_an_evaluation_beyond_its_memory_is_ended() -> None:
    sandbox = Sandbox(places=1, limit_s=30, memory_mb=48)
    wide = {"items": {"anyOf": [{"type": "string"}] * 300}}
    with pytest.raises(Overrun, match="more than 48 MB"):
        sandbox.run(fit(wide, [1] * 20_000))
    sandbox.close()


def test_a_process_that_died_between_jobs_is_replaced() -> None:
    sandbox = Sandbox(places=1, limit_s=30)
    assert sandbox.run(fit({}, 1)) == {"problems": []}
    process = sandbox._idle.get_nowait()
    sandbox._idle.put(process)
    os.kill(process._process.pid, 9)
    process._process.wait()
    assert sandbox.run(fit({}, 1)) == {"problems": []}
    sandbox.close()


def test_a_process_ends_after_its_share_of_jobs() -> None:
    sandbox = Sandbox(places=1, limit_s=30, jobs_each=1)
    assert sandbox.run(fit({}, 1)) == {"problems": []}
    assert sandbox._idle.empty()


def test_errors_of_a_job_are_raised_again() -> None:
    sandbox = Sandbox(places=1, limit_s=30)
    with pytest.raises(InvalidInput, match="1001 alternatives"):
        sandbox.run(fit({"anyOf": [{}] * 1_001}, 1))
    framework_run: JsonObject = {"framework": "f", "state_schema": "s", "manifest_digest": "d" * 64, "state": "W10="}
    with pytest.raises(InvalidJson, match="not a JSON object"):
        sandbox.run({"kind": "state", "agent": "a", "framework_run": framework_run, "most": 100})
    sandbox.close()


def test_a_process_knows_none_of_the_services_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_ADMIN_PASSWORD", "a secret of the service")
    sandbox = Sandbox(places=1, limit_s=30)
    sandbox.run(fit({}, 1))
    process = sandbox._idle.get_nowait()
    with open(f"/proc/{process._process.pid}/environ", "rb") as environment:
        assert b"SAYSO" not in environment.read()
    process.kill()
