"""Batches of calls driven to their end, with answers given in another process."""

import itertools
from collections.abc import Callable
from typing import Any

from sayso.core.canonical_json import canonical_json
from sayso.core.records.events import Event
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunStatus
from sayso.runner.agents import Agent
from sayso.runner.batches import Resumption
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState, start_state
from tests.sayso.runners import (
    POLICY,
    Ledger,
    Ran,
    approve,
    give,
    reload,
    time_out,
)

START = start_state("run_1", "support", "Refund A-1", {"tier": "gold"}, "thread_1")

CALLS = {
    "allow": ("look", {"order": "A"}),
    "deny": ("drop", {"order": "A"}),
    "approve": ("refund", {"order": "A", "amount": 5}),
    "edit": ("refund", {"order": "A", "amount": 7}),
    "value": ("pay", {"order": "A"}),
    "timeout": ("refund", {"order": "A", "amount": 9}),
}
ANSWERS: dict[str, Callable[[ItemDraft], Resumption]] = {
    "approve": approve,
    "edit": lambda ask: approve(ask, amount=1),
    "value": lambda ask: give(ask, "1234"),
    "timeout": time_out,
}
ACTIONS = {"allow": "allow", "deny": "deny", "value": "request_user_input"}
RUNS = {
    "allow": ["look", {"order": "A"}],
    "approve": ["refund", {"order": "A", "amount": 5.0}],
    "edit": ["refund", {"order": "A", "amount": 1.0}],
    "value": ["pay", {"order": "A", "code": "1234"}],
}
ENDS = {"continue": RunStatus.COMPLETED, "degrade": RunStatus.DEGRADED, "fail": RunStatus.FAILED}


class Walk:
    """One batch driven to its end."""

    def __init__(self, agent: Agent, ran: Ran) -> None:
        self.agent = agent
        self.ran = ran
        self.journal = Ledger("run_1")
        self.pauses: list[RunSuspended[RunState]] = []
        self.events: list[Event] = []

    async def go(self, mix: tuple[str, ...]) -> RunEnded[RunState]:
        rest = await drive(ModelRun(self.agent, START), policy=POLICY, journal=self.journal)
        while isinstance(rest, RunSuspended):
            assert self.ran == [], "nothing of a batch runs while any of it waits"
            self.pauses.append(rest)
            self.journal.events += rest.events
            outcomes = {ask.index: ANSWERS[mix[ask.index]](ask) for ask in rest.drafts}
            rest = await drive(
                ModelRun(self.agent, reload(rest.state)), policy=POLICY, journal=self.journal, outcomes=outcomes
            )
        self.events = [*self.journal.events, *rest.events]
        return rest


def mixes() -> list[tuple[str, ...]]:
    """Return every batch of one or two calls in every order, and every mix of three or four."""
    ordered = [mix for size in (1, 2) for mix in itertools.product(CALLS, repeat=size)]
    return ordered + [mix for size in (3, 4) for mix in itertools.combinations_with_replacement(CALLS, size)]


def sort(calls: list[Any]) -> list[bytes]:
    return sorted(map(canonical_json, calls))
