"""Every command of the page on any language does what the page says."""

import os
import subprocess
from pathlib import Path

from tests.journeys.stacks import PATIENCE_S, quick_stack
from tests.pages import find_blocks, read_page


def test_curl_commands_work(tmp_path: Path) -> None:
    with quick_stack(tmp_path / "home") as stack:
        commands = "\n".join(find_blocks(read_page("start/curl"), "sh"))
        known = {"SAYSO_ADMIN_PASSWORD": stack.admin_password, "SAYSO_KEY": stack.agent_key}

        done = subprocess.run(
            ["bash", "-c", "set -euo pipefail\n" + commands.replace(":8321", f":{stack.port}")],
            env={**os.environ, **known},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

        assert done.returncode == 0, done.stdout + done.stderr
        assert "paying {'order': '4711', 'amount': 200}" in done.stdout
        assert "Not this month." in done.stdout
        assert '"type": "run_completed"' in done.stdout
