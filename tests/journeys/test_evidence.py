"""The evidence of the demo's run is verified by the script alone."""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx

from demo.journeys import run_demo
from launch.stops import wait_until
from sayso.core.key_files import create_key_file
from sayso.features.evidence import verify_evidence
from tests.journeys.stacks import PATIENCE_S, quick_stack


def test_evidence_of_the_demo_is_verified_by_the_script(tmp_path: Path) -> None:
    keys, sink, file = tmp_path / "keys", tmp_path / "checkpoints.jsonl", tmp_path / "evidence.jsonl"
    create_key_file(keys)
    environ = {"SAYSO_KEY_FILE": str(keys), "SAYSO_CHECKPOINTS": f"file://{sink}"}
    with quick_stack(tmp_path / "home", **environ) as stack:
        journey = asyncio.run(run_demo(stack, lambda _: None))
        assert wait_until(sink.is_file, PATIENCE_S)
        with httpx.Client(base_url=stack.url) as http:
            sign_in = http.post("/api/v1/sessions", json={"name": "admin", "password": stack.admin_password})
            headers = {"Authorization": f"Bearer {sign_in.json()['token']}"}
            answer = http.get("/api/v1/evidence", params={"run": journey.run.id}, headers=headers)
        assert answer.status_code == 200, answer.text
        file.write_text(answer.json()["text"])
    done = subprocess.run(
        [sys.executable, "-P", str(verify_evidence.__file__), str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing was altered.\n", "")
