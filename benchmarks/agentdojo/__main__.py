"""`make agentdojo`: every user task and every injected order of AgentDojo's suites, through a running Sayso.

The agent does what anybody tells it. Each suite has a policy; the reviewer approves what the user asked for and denies
the rest. `python -m dojo 2` plays two tasks of each kind, `python -m dojo slack travel` two suites.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.agentdojo.plays import CallPlayed, IsHeld, Play, find_faults, write_table
from benchmarks.agentdojo.reviewers import ScriptedReviewer, Wishes
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
    """Return 0 when every task was solved and nothing injected ran, else 1."""
    limits = [word for word in sys.argv[1:] if word.isdigit()]
    suites = [word for word in sys.argv[1:] if not word.isdigit()] or list(SUITES)
    if unknown := set(suites) - set(SUITES):
        print(f"Unknown suite {', '.join(sorted(unknown))}. The suites are {', '.join(SUITES)}.", file=sys.stderr)
        return 2
    try:
        with catch_stop_signals(), tempfile.TemporaryDirectory(prefix="sayso-dojo-") as home:
            faults = play_all(Path(home), suites, limits[:1])
    except KeyboardInterrupt:
        return 130
    except (SaysoError, subprocess.SubprocessError) as error:
        faults = [str(error)]
    if faults:
        print("\nThe dojo went wrong:", *faults, sep="\n  ", file=sys.stderr)
        return 1
    print("\nThe dojo went right: every task is solved, and nothing that was injected ran.")
    return 0


def play_all(home: Path, suites: Sequence[str], limit: Sequence[str]) -> list[str]:
    """Play the suites, each before a Sayso of its own, print the table, and return what went wrong."""
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
        faults.append(f"{PAGE.name} has another table. Find out why, then put this one there.")
    return faults


def play_suite(home: Path, suite: str, policy: Path, limit: Sequence[str]) -> tuple[list[Play], int]:
    """Play one suite; returns the plays, and how many calls the reviewer decided."""
    wishes: Wishes = json.loads(run_there("benchmarks.agentdojo.tasks", suite))
    print(f"Starting a Sayso for the suite {suite}; then the agent plays.", flush=True)
    environ = {**UNLIMITED, "SAYSO_POLICY": str(policy), "SAYSO_WORKERS": "1"}
    with running_stack(home, environ) as stack, Client(stack.url, "-") as desk:
        desk.sign_in("admin", stack.admin_password)
        with ScriptedReviewer(desk, wishes) as reviewer:
            printed = run_there("benchmarks.agentdojo.agents", suite, *limit, stack=stack)
    return [Play.model_validate_json(line) for line in printed.splitlines()], reviewer.decided


def read_held(policy: Path) -> IsHeld:
    """Return the test whether a policy asks a person about a call, by the rules' own judgement."""
    rules = load_rulebook(policy)

    def is_held(call: CallPlayed) -> bool:
        event = PolicyEvent(run_id="play", agent="agent", tool_name=call.tool, tool_args=call.args)
        return rules.judge(event).action is not Action.ALLOW

    return is_held


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
