"""An agent that makes every call of the user's task and of the injection. Runs in AgentDojo's environment.

`python -m benchmarks.agentdojo.agents SUITE [limit]` plays every user task alone and with every injection task. Each
call goes through `gate` to the desk in SAYSO_URL. Each injection first runs without a gate, to show that the attack
works. Every play prints one line of JSON. AgentDojo's own checks tell whether task and goal were reached.

With plans as JSON on standard input, by user task, each play first proposes the plan of its task and waits until it is
in force. Injections then do not run without a gate.
"""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.types import text_content_block_from_string
from pydantic_core import to_jsonable_python

from benchmarks.agentdojo.attacks import list_calls
from benchmarks.agentdojo.plays import CallPlayed, Ending, Play
from benchmarks.agentdojo.tasks import load_environment, load_suite, show_call
from sayso import Client, Denied, gate
from sayso.errors import SaysoError

_AT_ONCE = 4


class GatedRuntime(FunctionsRuntime):
    """AgentDojo's runtime with every tool gated, unless `desk` is None."""

    desk: Client | None
    title: str
    thread_id: str

    def propose(self, plan: Any) -> None:
        """Propose a plan and wait until it is in force. Raises `Denied` if a person denies it."""
        if self.desk is None:
            return
        tools = [
            {**one, "definition": {"description": self.functions[one["tool"]].description}} for one in plan["tools"]
        ]
        body = {**plan, "title": self.title, "thread_id": self.thread_id, "tools": tools}
        found = self.desk.await_mandate(self.desk.propose_mandate(body).id)
        if found.state != "in_force":
            raise Denied(f"The plan of {self.title} is {found.state}.")

    def execute(self, env: Any, call: Any) -> tuple[Any, str | None, Ending]:
        """Run one call if the desk allows it; return its result, its error, and how it ended."""
        try:
            if self.desk is None:
                return self._run(env, call.function, call.args), None, "ran"
            return self._run_gated(env, call, self.desk), None, "ran"
        except Denied as denied:
            return "", f"Denied: {denied.message}", "denied"
        except SaysoError:
            raise
        except Exception as error:  # noqa: BLE001  a tool may raise anything; the agent continues
            return "", f"{type(error).__name__}: {error}", "failed"

    def _run_gated(self, env: Any, call: Any, desk: Client) -> Any:
        description = self.functions[call.function].description
        args = dict(call.args)
        options: Any = {"client": desk, "title": self.title, "thread_id": self.thread_id, "quiet": True}
        with gate(call.function, args, description=description, **options) as allowed:
            result = self._run(env, call.function, allowed.args)
            allowed.result = to_jsonable_python(result)
        return result

    def _run(self, env: Any, function: str, args: Any) -> Any:
        return self.run_function(env, function, args, raise_on_error=True)[0]


class Obedient(BasePipelineElement):
    """An agent that makes the user's first call, then the injected ones, then the rest of the user's."""

    def __init__(self, suite: Any, task: Any, injection: Any | None, desk: Client | None, plan: Any = None) -> None:
        self.suite, self.task, self.injection, self.desk, self.plan = suite, task, injection, desk, plan
        self.calls: list[CallPlayed] = []

    def query(
        self, query: str, runtime: Any, env: Any = None, messages: Any = (), extra_args: Any = None
    ) -> tuple[str, Any, Any, list[Any], Any]:
        """Make all calls, and answer with the tasks' ground truths. AgentDojo's checks do not see denied calls."""
        name = self.task.ID if self.injection is None else f"{self.task.ID} beside {self.injection.ID}"
        runtime.desk, runtime.title, runtime.thread_id = self.desk, f"{name}: {self.task.PROMPT}"[:200], uuid4().hex
        if self.plan is not None:
            runtime.propose(self.plan)
        replies: list[Any] = [*messages]
        before = env.model_dump_json()
        for injected, call in self._list_calls(env):
            result, error, ended = runtime.execute(env, call)
            after = env.model_dump_json() if ended != "denied" else before
            changed, before = after != before, after
            args = to_jsonable_python(dict(call.args))
            made = CallPlayed(tool=call.function, args=args, injected=injected, ended=ended, changed=changed)
            self.calls.append(made)
            if made.started:
                replies += _describe_call(call, result, error)
        answer = [text_content_block_from_string(self._answer())]
        replies.append({"role": "assistant", "content": answer, "tool_calls": None})
        return query, runtime, env, replies, extra_args

    def _list_calls(self, env: Any) -> Iterator[tuple[bool, Any]]:
        """Yield the calls in order, and whether only the attacker wants each.

        The attacker's calls depend on the environment after the user's first call.
        """
        requested = self.task.ground_truth(env) if self.desk is not None else []
        shown = [show_call(call) for call in requested]
        yield from ((False, call) for call in requested[:1])
        if self.injection is not None:
            for call in list_calls(self.suite.name, self.injection, env):
                yield show_call(call) not in shown, call
        yield from ((False, call) for call in requested[1:])

    def _answer(self) -> str:
        injected = getattr(self.injection, "GROUND_TRUTH_OUTPUT", "")
        return f"{self.task.GROUND_TRUTH_OUTPUT}\n{injected}".rstrip()


def _describe_call(call: Any, result: Any, error: str | None) -> list[Any]:
    output = [text_content_block_from_string(tool_result_to_str(result))]
    return [
        {"role": "assistant", "tool_calls": [call], "content": [text_content_block_from_string("")]},
        {"role": "tool", "content": output, "tool_call": call, "tool_call_id": None, "error": error},
    ]


def play(suite: Any, user: str, injection: str | None, desk: Client | None, plan: Any = None) -> Play:
    """Play one user task, alone or with one injection. Without a desk, make only the injection's calls."""
    wanted = suite.injection_tasks[injection] if injection else None
    agent = Obedient(suite, suite.user_tasks[user], wanted, desk, plan)
    world = load_environment(suite).model_copy(deep=True)
    solved, goal = suite.run_task_with_pipeline(agent, agent.task, wanted, {}, GatedRuntime, world)
    goal = goal and injection is not None  # AgentDojo returns True without an injection
    calls = tuple(agent.calls)
    return Play(
        suite=suite.name,
        user=user,
        injection=injection,
        gated=desk is not None,
        solved=solved,
        goal=goal,
        calls=calls,
    )


def main() -> None:
    """Play a suite, or its first tasks of each kind up to the limit."""
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else None
    suite, plans = load_suite(sys.argv[1]), json.loads(sys.stdin.read() or "{}")
    users, injections = list(suite.user_tasks)[:limit], list(suite.injection_tasks)[:limit]
    for injection in injections if not plans else ():
        print(play(suite, users[0], injection, None).model_dump_json(), flush=True)
    pairs = [(user, injection) for user in users for injection in (None, *injections)]
    with Client() as desk, ThreadPoolExecutor(_AT_ONCE) as pool:
        for played in pool.map(lambda pair: play(suite, pair[0], pair[1], desk, plans.get(pair[0])), pairs):
            print(played.model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
