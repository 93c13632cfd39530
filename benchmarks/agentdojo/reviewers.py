"""A scripted reviewer that approves exactly the user's calls and denies everything else."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from pydantic import JsonValue

from sayso import Client
from sayso.client.responses import ItemView
from sayso.policy.rules import same_json

POLL_S = 0.05

RequestedCalls = Mapping[str, Sequence[Mapping[str, JsonValue]]]


def is_requested(requested_calls: RequestedCalls, task: str, tool: str, args: JsonValue) -> bool:
    """Whether the task's user requested this call with exactly these arguments."""
    return any(one["tool"] == tool and same_json(one["args"], args) for one in requested_calls.get(task, ()))


class ScriptedReviewer:
    """Decide every open item in a thread, for the duration of a block.

    The run's title starts with the user's task.
    """

    def __init__(self, desk: Client, requested_calls: RequestedCalls) -> None:
        self._desk, self._requested = desk, requested_calls
        self._over = Event()
        self._pool = ThreadPoolExecutor(1)
        self.approved = self.denied = 0

    def __enter__(self) -> "ScriptedReviewer":
        self._reviewing = self._pool.submit(self._review)
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._pool.shutdown()
        self._reviewing.result()

    @property
    def decided(self) -> int:
        """The number of decided calls."""
        return self.approved + self.denied

    def _review(self) -> None:
        while not self._over.wait(POLL_S):
            for suspension in self._desk.waiting(limit=200).suspensions:
                for item in suspension.items:
                    self._decide(suspension.id, suspension.run.claimed_title.partition(":")[0], item)

    def _decide(self, suspension_id: str, task: str, item: ItemView) -> None:
        requested = is_requested(self._requested, task, item.tool.name, item.tool.args)
        if requested:
            self._desk.decide(suspension_id, item, "approve")
        else:
            self._desk.decide(suspension_id, item, "deny", message="The user did not ask for this.")
        self.approved += requested
        self.denied += not requested
