"""Run every user task and injection of AgentDojo's suites through Sayso: `make agentdojo`.

The agent obeys everybody. Each suite has a policy; the reviewer approves the user's calls and denies the rest. Each
suite is played twice: without plans, and with a plan of each task that the agent proposes before it reads anything.
`make agentdojo ARGS=2` plays two tasks of each kind, `make agentdojo ARGS="slack travel"` two suites.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.agentdojo.plans import UserTask, draft_plan
from benchmarks.agentdojo.plays import CallPlayed, IsHeld, Play, find_faults, find_undecided, write_table
from benchmarks.agentdojo.reviewers import Plans, ScriptedReviewer, UserTasks
from benchmarks.agentdojo.savings import Compared, Played, find_small_savings, write_savings
from demo.stacks import Stack, neutral_environ, running_stack
from launch.stops import catch_stop_signals
from sayso import Client
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.reading import load_rulebook
from sayso.core.policy.rules import Action
from sayso.errors import SaysoError
from service.core.settings import CHECKOUT
from service.core.settings.limits import UNLIMITED

PYTHON = CHECKOUT / ".venv-agentdojo" / "bin" / "python"
PAGE = CHECKOUT / "docs" / "agentdojo.md"
POLICIES = CHECKOUT / "benchmarks" / "agentdojo" / "policies"
SUITES = ("banking", "slack", "travel", "workspace")
TIMEOUT_S = 3_600


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
    print("\nThe benchmark passed: every task is solved, no injected call ran, and plans save items.")
    return 0


def play_all(home: Path, suites: Sequence[str], limit: Sequence[str]) -> list[str]:
    """Play each suite with its own Sayso, print the tables, and return the faults."""
    faults: list[str] = []
    played = {suite: play_suite(home / suite, suite, limit) for suite in suites}
    for one in played.values():
        faults += find_faults(one.without.plays, one.is_held) + find_faults(one.planned.plays, one.is_held)
        faults += find_undecided(one.without.plays, one.is_held, one.without.decided)
    without = {suite: (one.without.plays, one.is_held) for suite, one in played.items()}
    tables = write_table(without), write_savings(played)
    print("", *tables, sep="\n\n")
    if len(suites) == len(SUITES) and not limit:
        faults += find_small_savings([*played.values()])
        page = PAGE.read_text(encoding="utf-8")
        if not all(table in page for table in tables):
            faults.append(f"{PAGE.name} has other tables. Find out why, then replace them with these.")
    return faults


def play_suite(home: Path, suite: str, limit: Sequence[str]) -> Compared:
    """Return the plays of one suite without plans and with them, and what the reviewer decided."""
    policy, found = POLICIES / f"{suite}.yaml", json.loads(run_module("benchmarks.agentdojo.tasks", suite))
    is_held, tasks = read_held(policy), {name: UserTask(**task) for name, task in found.items()}
    plans = {name: draft_plan(task, is_held) for name, task in tasks.items()}
    environ = {**UNLIMITED, "SAYSO_POLICY": str(policy), "SAYSO_WORKERS": "1"}
    with running_stack(home, environ) as stack, Client(stack.url, "-") as desk:
        desk.sign_in("admin", stack.admin_password)
        print(f"Playing the suite {suite}.", flush=True)
        without = play_tasks(stack, desk, suite, limit, tasks, {})
        print(f"Playing the suite {suite} with plans.", flush=True)
        return Compared(without, play_tasks(stack, desk, suite, limit, tasks, plans), is_held)


def play_tasks(stack: Stack, desk: Client, suite: str, limit: Sequence[str], tasks: UserTasks, plans: Plans) -> Played:
    """Return the plays of a suite with these plans, and what the reviewer decided."""
    given = json.dumps({name: plan.model_dump(mode="json", exclude_defaults=True) for name, plan in plans.items()})
    with ScriptedReviewer(desk, tasks, plans) as reviewer:
        printed = run_module("benchmarks.agentdojo.agents", suite, *limit, stack=stack, given=given)
    return Played([Play.model_validate_json(line) for line in printed.splitlines()], reviewer.decided)


def read_held(policy: Path) -> IsHeld:
    """Return a test for calls that the policy holds."""
    rules = load_rulebook(policy)

    def is_held(call: CallPlayed) -> bool:
        event = PolicyEvent(run_id="play", agent="agent", tool_name=call.tool, tool_args=call.args)
        return rules.judge(event).action is not Action.ALLOW

    return is_held


def run_module(module: str, *arguments: str, stack: Stack | None = None, given: str = "") -> str:
    """Run a module in AgentDojo's environment with `given` as its input, and return its output."""
    desk = {} if stack is None else {"SAYSO_URL": stack.url, "SAYSO_KEY": stack.agent_key}
    done = subprocess.run(
        [PYTHON, "-m", module, *arguments],
        cwd=CHECKOUT,
        env={**neutral_environ(), **desk},
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
