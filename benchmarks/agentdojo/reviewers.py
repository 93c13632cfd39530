"""A scripted reviewer that approves exactly the user's calls and plans, and denies everything else."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from pydantic import JsonValue

from benchmarks.agentdojo.plans import UserTask
from benchmarks.agentdojo.plays import DecidedItem
from sayso import Client
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import same_json
from sayso.core.records.permissions import MANDATE, Plan
from sayso.wire.items import ItemView

POLL_S = 0.05

UserTasks = Mapping[str, UserTask]
Plans = Mapping[str, Plan]


def is_requested(tasks: UserTasks, task: str, tool: str, args: JsonValue) -> bool:
    """Whether the task's user requested this call with exactly these arguments."""
    return task in tasks and any(one["tool"] == tool and same_json(one["args"], args) for one in tasks[task].calls)


def is_planned(plans: Plans, task: str, args: JsonObject) -> bool:
    """Whether this is exactly the plan of the task, under any title."""
    sent = {name: value for name, value in args.items() if name != "title"}
    return task in plans and same_json(plans[task].model_dump(mode="json", exclude_defaults=True), sent)


class ScriptedReviewer:
    """Decide every open item in a thread, for the duration of a block.

    The run's title starts with the user's task. It also tells whether an injection runs beside it, for the count alone.
    """

    def __init__(self, desk: Client, tasks: UserTasks, plans: Plans | None = None) -> None:
        self._desk, self._tasks, self._plans = desk, tasks, plans or {}
        self._over = Event()
        self._pool = ThreadPoolExecutor(1)
        self.decided: list[DecidedItem] = []

    def __enter__(self) -> "ScriptedReviewer":
        self._reviewing = self._pool.submit(self._review)
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._pool.shutdown()
        self._reviewing.result()

    def _review(self) -> None:
        while not self._over.wait(POLL_S):
            for suspension in self._desk.waiting(limit=200).suspensions:
                for item in suspension.items:
                    self._decide(suspension.id, suspension.run.claimed_title.partition(":")[0], item)

    def _decide(self, suspension_id: str, play: str, item: ItemView) -> None:
        task, is_plan = play.partition(" ")[0], item.tool.name == MANDATE
        if is_plan:
            approved = is_planned(self._plans, task, item.tool.args)
        else:
            approved = is_requested(self._tasks, task, item.tool.name, item.tool.args)
        if approved:
            self._desk.decide(suspension_id, item, "approve")
        else:
            self._desk.decide(suspension_id, item, "deny", message="The user did not ask for this.")
        self.decided.append(DecidedItem(play == task, is_plan, approved))
