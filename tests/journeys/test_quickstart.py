"""Every command of the quick start does what the page says."""

import os
import re
import subprocess
from pathlib import Path

from demo.agents import Effects
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, quick_stack

PAGE = (CHECKOUT / "docs" / "quickstart.md").read_text()
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_quickstart_commands_work(tmp_path: Path) -> None:
    with quick_stack(tmp_path / "home") as stack:
        script = "set -euo pipefail\n" + "\n".join(COMMANDS).replace(":8321", f":{stack.port}")
        known = {"SAYSO_ADMIN_PASSWORD": stack.admin_password, "SAYSO_KEY": stack.agent_key}

        done = subprocess.run(
            ["bash", "-c", script],
            env={**os.environ, **known},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

        assert done.returncode == 0, done.stdout + done.stderr
        assert '"status": "completed"' in done.stdout
        assert "1 of 2 calls succeeded. Not done: send_email (Jane is on holiday.)." in done.stdout
        assert [effect.args["to"] for effect in Effects(stack.home).read()] == ["john.doe@example.com"]
