"""`make dojo`: every user task and every injected order of AgentDojo's banking suite, through a running Sayso.

The agent does whatever it is told, by whomever. The rules hold what moves money or changes the account; the reviewer
approves what the user asked for and denies the rest. `python -m dojo 2` plays two tasks of each kind.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.stacks import Stack, neutral_environ, running_stack
from dojo.plays import Play, find_faults, write_table
from dojo.reviewers import ScriptedReviewer, Wishes
from launch.stops import heard_stops
from sayso import Client
from sayso.errors import SaysoError
from service.settings import CHECKOUT

PYTHON = CHECKOUT / ".venv-dojo" / "bin" / "python"
PAGE = CHECKOUT / "docs" / "dojo.md"
TIMEOUT_S = 900


def main() -> int:
    """Return 0 when every task was solved and nothing injected ran, else 1."""
    try:
        with heard_stops(), tempfile.TemporaryDirectory(prefix="sayso-dojo-") as home:
            faults = play_all(Path(home), sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    except (SaysoError, subprocess.SubprocessError) as error:
        faults = [str(error)]
    if faults:
        print("\nThe dojo went wrong:", *faults, sep="\n  ", file=sys.stderr)
        return 1
    print("\nThe dojo went right: every task is solved, and nothing that was injected ran.")
    return 0


def play_all(home: Path, given: list[str]) -> list[str]:
    """Play everything before a Sayso of its own, print the table, and return what went wrong."""
    wishes: Wishes = json.loads(run_there("dojo.tasks"))
    print("Starting the server, the service, a worker and the clock; then the agent plays.", flush=True)
    environ = {"SAYSO_POLICY": str(CHECKOUT / "dojo" / "policy.yaml"), "SAYSO_WORKERS": "1"}
    with running_stack(home, environ) as stack, Client(stack.url, "-") as desk:
        desk.sign_in("admin", stack.admin_password)
        with ScriptedReviewer(desk, wishes) as reviewer:
            printed = run_there("dojo.agents", *given, stack=stack)
    plays = [Play.model_validate_json(line) for line in printed.splitlines()]
    table = write_table(plays)
    print(f"\n{table}")
    faults = find_faults(plays, reviewer.decided)
    if not given and table not in PAGE.read_text(encoding="utf-8"):
        faults.append(f"{PAGE.name} has another table. Look why, then put this one there.")
    return faults


def run_there(module: str, *given: str, stack: Stack | None = None) -> str:
    """Run a program in AgentDojo's environment to its end, and return what it printed."""
    desk = {} if stack is None else {"SAYSO_URL": stack.url, "SAYSO_KEY": stack.agent_key}
    done = subprocess.run(
        [PYTHON, "-m", module, *given],
        cwd=CHECKOUT,
        env={**neutral_environ(), **desk},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
