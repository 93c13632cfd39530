"""A reviewer who knows what the user asked for and nothing else: that is approved, everything else is denied."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from pydantic import JsonValue

from sayso import Client
from sayso.client.responses import ItemView
from sayso.policy.rules import same_json

LOOK_EVERY_S = 0.05

Wishes = Mapping[str, Sequence[Mapping[str, JsonValue]]]


def is_wished(wishes: Wishes, task: str, tool: str, args: JsonValue) -> bool:
    """Whether a call, with exactly these arguments, is what the user of this task asked for."""
    return any(one["tool"] == tool and same_json(one["args"], args) for one in wishes.get(task, ()))


class ScriptedReviewer:
    """Somebody at the desk for the length of a block, who decides whatever comes at once.

    The user's task stands at the beginning of what is asked; it is all the reviewer goes by.
    """

    def __init__(self, desk: Client, wishes: Wishes) -> None:
        self._desk, self._wishes = desk, wishes
        self._over = Event()
        self._pool = ThreadPoolExecutor(1)
        self.approved = self.denied = 0

    def __enter__(self) -> "ScriptedReviewer":
        self._work_done = self._pool.submit(self._work)
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._pool.shutdown()
        self._work_done.result()

    @property
    def decided(self) -> int:
        """How many calls were held, and decided."""
        return self.approved + self.denied

    def _work(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            for waits in self._desk.waiting(limit=200).suspensions:
                for item in waits.items:
                    self._decide(waits.id, waits.run.claimed_title.partition(":")[0], item)

    def _decide(self, suspension_id: str, task: str, item: ItemView) -> None:
        wished = is_wished(self._wishes, task, item.tool.name, item.tool.args)
        if wished:
            self._desk.decide(suspension_id, item, "approve")
        else:
            self._desk.decide(suspension_id, item, "deny", message="The user did not ask for this.")
        self.approved += wished
        self.denied += not wished
