"""Plan what every run of a storm does, from its seed: which agent, which calls in which turns, who asks for it.

A plan travels as the run's input; the storm's model reads it there and asks for exactly these calls. So the checker
knows what was wanted from what was sent, not from what Sayso says.
"""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from sayso.canonical_json import JsonObject

REVIEWERS = ("anna", "ben", "cleo", "dora")
AGENT_KEY = "demo"
"""The name behind the agent's key."""

AGENTS = ("storm-continue", "storm-degrade", "storm-fail")
_AGENT_WEIGHTS = (80, 14, 6)


class Kind(NamedTuple):
    """One kind of tool: whether it may run twice with one key, how slow it is, and how often it is called."""

    idempotent: bool = False
    slow: bool = False
    asks_day: bool = False
    weight: float = 10


TOOLS: Mapping[str, Kind] = MappingProxyType(
    {
        "pay": Kind(weight=22),
        "pay_slowly": Kind(slow=True, weight=0.12),
        "order": Kind(idempotent=True, weight=16),
        "order_slowly": Kind(idempotent=True, slow=True, weight=2.9),
        "sign": Kind(weight=8),
        "reserve": Kind(weight=5),
        "invite": Kind(asks_day=True, weight=10),
        "guess": Kind(idempotent=True, asks_day=True, weight=5),
        "look_up": Kind(idempotent=True, weight=12),
        "jot": Kind(weight=12),
        "wipe": Kind(weight=3),
    }
)
"""Every tool of the storm; a third of the calls are to idempotent ones, three in a hundred outlast the lease.

One in eight hundred does so and is not idempotent. With a kill every ten runs a good part of those are cut off in the
middle: this share makes nearly all of a storm's doubt, and is the only part of it that nothing can save.
"""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Frozen):
    """One call that the model is to ask for."""

    call_id: str
    tool: str
    args: JsonObject


class Plan(_Frozen):
    """What one run does."""

    number: int
    agent: str
    owner: str
    turns: tuple[tuple[ScriptedCall, ...], ...]
    cancel_after_s: float | None

    @property
    def calls(self) -> dict[str, ScriptedCall]:
        """Every call by its id, which is used once in a run."""
        return {call.call_id: call for turn in self.turns for call in turn}


def dice(*words: object) -> Random:
    """Return the dice that these words make: the same words, the same throws."""
    return Random(":".join(map(str, words)))  # noqa: S311  a storm is repeated by its seed, nothing is kept secret


def plan_run(seed: int, number: int) -> Plan:
    """Return the plan of one run of the storm with this seed."""
    throw = dice(seed, "plan", number)
    turns = tuple(
        tuple(
            _plan_call(throw, number, turn, index) for index in range(throw.choices((1, 2, 3, 4), (60, 20, 12, 8))[0])
        )
        for turn in range(throw.choices((1, 2, 3), (65, 25, 10))[0])
    )
    return Plan(
        number=number,
        agent=throw.choices(AGENTS, _AGENT_WEIGHTS)[0],
        owner=AGENT_KEY if throw.random() < 0.8 else throw.choice(REVIEWERS),
        turns=turns,
        cancel_after_s=round(throw.uniform(0, 2), 3) if throw.random() < 0.04 else None,
    )


def _plan_call(throw: Random, number: int, turn: int, index: int) -> ScriptedCall:
    tool = throw.choices([*TOOLS], [kind.weight for kind in TOOLS.values()])[0]
    args: JsonObject = {"account": f"acc-{throw.randrange(1000)}", "amount": throw.randint(1, 900), "note": "⚡ ünï"}
    return ScriptedCall(call_id=f"r{number}t{turn}c{index}", tool=tool, args=args)
