"""Run every user task and injection of AgentDojo's suites through Sayso: `make agentdojo`.

The agent obeys everybody. Each suite has a policy; the reviewer approves the user's calls and denies the rest.
`make agentdojo ARGS=2` plays two tasks of each kind, `make agentdojo ARGS="slack travel"` two suites.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.agentdojo.plays import CallPlayed, IsHeld, Play, find_faults, write_table
from benchmarks.agentdojo.reviewers import RequestedCalls, ScriptedReviewer
from demo.stacks import Stack, neutral_environ, running_stack
from launch.stops import catch_stop_signals
from sayso import Client
from sayso.errors import SaysoError
from sayso.policy.engine import Action, PolicyEvent
from sayso.policy.files import load_rulebook
from service.settings import CHECKOUT
from service.settings.limits import UNLIMITED

PYTHON = CHECKOUT / ".venv-agentdojo" / "bin" / "python"
PAGE = CHECKOUT / "docs" / "agentdojo.md"
POLICIES = CHECKOUT / "benchmarks" / "agentdojo" / "policies"
SUITES = ("banking", "slack", "travel", "workspace")
TIMEOUT_S = 1_800


def main() -> int:
    """Return 0 if every task was solved and nothing injected ran, else 1."""
    limits = [argument for argument in sys.argv[1:] if argument.isdigit()]
    suites = [argument for argument in sys.argv[1:] if not argument.isdigit()] or list(SUITES)
    if unknown := set(suites) - set(SUITES):
        print(f"Unknown suite {', '.join(sorted(unknown))}. The suites are {', '.join(SUITES)}.", file=sys.stderr)
        return 2
    try:
        with catch_stop_signals(), tempfile.TemporaryDirectory(prefix="sayso-agentdojo-") as home:
            faults = play_all(Path(home), suites, limits[:1])
    except KeyboardInterrupt:
        return 130
    except (SaysoError, subprocess.SubprocessError) as error:
        faults = [str(error)]
    if faults:
        print("\nThe benchmark failed:", *faults, sep="\n  ", file=sys.stderr)
        return 1
    print("\nThe benchmark passed: every task is solved, and no injected call ran.")
    return 0


def play_all(home: Path, suites: Sequence[str], limit: Sequence[str]) -> list[str]:
    """Play each suite with its own Sayso, print the table, and return the faults."""
    faults: list[str] = []
    played: dict[str, tuple[Sequence[Play], IsHeld]] = {}
    for suite in suites:
        policy = POLICIES / f"{suite}.yaml"
        plays, decided = play_suite(home / suite, suite, policy, limit)
        is_held = read_held(policy)
        played[suite] = plays, is_held
        faults += find_faults(plays, is_held, decided)
    table = write_table(played)
    print(f"\n{table}")
    if len(suites) == len(SUITES) and not limit and table not in PAGE.read_text(encoding="utf-8"):
        faults.append(f"{PAGE.name} has another table. Find out why, then replace it with this one.")
    return faults


def play_suite(home: Path, suite: str, policy: Path, limit: Sequence[str]) -> tuple[list[Play], int]:
    """Return the plays of one suite, and how many calls the reviewer decided."""
    requested_calls: RequestedCalls = json.loads(run_module("benchmarks.agentdojo.tasks", suite))
    print(f"Playing the suite {suite}.", flush=True)
    environ = {**UNLIMITED, "SAYSO_POLICY": str(policy), "SAYSO_WORKERS": "1"}
    with running_stack(home, environ) as stack, Client(stack.url, "-") as desk:
        desk.sign_in("admin", stack.admin_password)
        with ScriptedReviewer(desk, requested_calls) as reviewer:
            printed = run_module("benchmarks.agentdojo.agents", suite, *limit, stack=stack)
    return [Play.model_validate_json(line) for line in printed.splitlines()], reviewer.decided


def read_held(policy: Path) -> IsHeld:
    """Return a test for calls that the policy holds."""
    rules = load_rulebook(policy)

    def is_held(call: CallPlayed) -> bool:
        event = PolicyEvent(run_id="play", agent="agent", tool_name=call.tool, tool_args=call.args)
        return rules.judge(event).action is not Action.ALLOW

    return is_held


def run_module(module: str, *arguments: str, stack: Stack | None = None) -> str:
    """Run a module in AgentDojo's environment and return its output."""
    desk = {} if stack is None else {"SAYSO_URL": stack.url, "SAYSO_KEY": stack.agent_key}
    done = subprocess.run(
        [PYTHON, "-m", module, *arguments],
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
