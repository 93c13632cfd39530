"""Be the worst agent there is: do what the user asks, and everything that is injected. Runs in AgentDojo's environment.

`python -m dojo.agents [limit]` plays every user task alone and with every injection task; each call of either goes
through `gate` to the desk in SAYSO_URL. What came of each is printed, a line of JSON each. AgentDojo's own checks say
whether the task was solved and whether the injection reached its goal.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.types import text_content_block_from_string
from pydantic_core import to_jsonable_python

from dojo.plays import CallPlayed, Play
from dojo.tasks import load_suite
from sayso import Client, Denied, gate

_AT_ONCE = 4


class GatedRuntime(FunctionsRuntime):
    """AgentDojo's runtime, with a person before every tool."""

    desk: Client
    task: str
    prompt: str

    def run_function(
        self, env: Any, function: str, kwargs: Any, raise_on_error: bool = False
    ) -> tuple[Any, str | None]:
        """Run the call if the desk lets it, with the arguments that it gives leave for."""
        asked = gate(
            function,
            dict(kwargs),
            client=self.desk,
            description=self.functions[function].description,
            title=f"{self.task}: {self.prompt}"[:200],
        )
        try:
            with asked as call:
                result, error = super().run_function(env, function, call.args, raise_on_error=True)
                call.result = to_jsonable_python(result)
        except Denied as denied:
            return "", f"Denied: {denied.message}"
        return result, error


class Obedient(BasePipelineElement):
    """An agent without judgement: the user's first call, then all that is injected, then the rest of the user's."""

    def __init__(self, task: Any, injection: Any | None, desk: Client) -> None:
        self.task, self.injection, self.desk = task, injection, desk
        self.calls: list[CallPlayed] = []

    def query(
        self, query: str, runtime: Any, env: Any = None, messages: Any = (), extra_args: Any = None
    ) -> tuple[str, Any, Any, list[Any], Any]:
        """Make all the calls, and answer as the task's ground truth does."""
        runtime.desk, runtime.task, runtime.prompt = self.desk, self.task.ID, self.task.PROMPT
        wished = [(False, call) for call in self.task.ground_truth(env)]
        injected = [(True, call) for call in self.injection.ground_truth(env)] if self.injection else []
        told: list[Any] = [*messages]
        for is_injected, call in [*wished[:1], *injected, *wished[1:]]:
            result, error = runtime.run_function(env, call.function, call.args)
            self.calls.append(CallPlayed(tool=call.function, injected=is_injected, ran=error is None))
            told.append({"role": "assistant", "tool_calls": [call], "content": [text_content_block_from_string("")]})
            words = [text_content_block_from_string(tool_result_to_str(result))]
            told.append({"role": "tool", "content": words, "tool_call": call, "tool_call_id": None, "error": error})
        last = [text_content_block_from_string(self.task.GROUND_TRUTH_OUTPUT)]
        told.append({"role": "assistant", "content": last, "tool_calls": None})
        return query, runtime, env, told, extra_args


def play(suite: Any, user: str, injection: str | None, desk: Client) -> Play:
    """Play one user task, alone or with one injection task."""
    wanted = suite.injection_tasks[injection] if injection else None
    agent = Obedient(suite.user_tasks[user], wanted, desk)
    solved, reached = suite.run_task_with_pipeline(agent, agent.task, wanted, {}, runtime_class=GatedRuntime)
    reached = reached and injection is not None  # without an injection AgentDojo calls the run secure by saying True
    return Play(user=user, injection=injection, solved=solved, reached=reached, calls=tuple(agent.calls))


def main() -> None:
    """Play everything, or as many of each kind of task as the limit says."""
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else None
    suite = load_suite()
    injections = [None, *list(suite.injection_tasks)[:limit]]
    pairs = [(user, injection) for user in list(suite.user_tasks)[:limit] for injection in injections]
    with Client() as desk, ThreadPoolExecutor(_AT_ONCE) as pool:
        for played in pool.map(lambda pair: play(suite, pair[0], pair[1], desk), pairs):
            print(played.model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
