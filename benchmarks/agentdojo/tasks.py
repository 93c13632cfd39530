"""AgentDojo's suites and the calls of each user task. Runs in AgentDojo's environment.

`python -m benchmarks.agentdojo.tasks SUITE` prints the words and calls of each user task as JSON, for the scripted
reviewer and the plans.
"""

import json
import sys
from functools import cache
from typing import Any

from agentdojo.functions_runtime import FunctionCall
from agentdojo.task_suite.load_suites import get_suite

VERSION = "v1.2.2"


def load_suite(name: str) -> Any:
    """Return one suite in version `VERSION`."""
    return get_suite(VERSION, name)


@cache
def load_environment(suite: Any) -> Any:
    """Return the environment that each play of a suite copies: parsing it takes longer than a play."""
    return suite.load_and_inject_default_environment({})


def list_tasks(suite: Any) -> dict[str, dict[str, Any]]:
    """Return the user's words and the calls of each user task, by the task's id."""
    fresh = load_environment(suite)
    calls = {
        id_: task.ground_truth(task.init_environment(fresh.model_copy(deep=True)))
        for id_, task in suite.user_tasks.items()
    }
    return {
        id_: {"words": task.PROMPT, "calls": [show_call(call) for call in calls[id_]]}
        for id_, task in suite.user_tasks.items()
    }


def show_call(call: FunctionCall) -> dict[str, Any]:
    """Return a call as plain JSON."""
    return {"tool": call.function, "args": dict(call.args)}


if __name__ == "__main__":
    print(json.dumps(list_tasks(load_suite(sys.argv[1]))))
