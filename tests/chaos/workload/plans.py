"""The plan of every run, derived from the seed: its agent, its owner and its calls per turn.

A plan is the run's input. The scripted model reads it there and requests exactly these calls. So the checker compares
with what was sent, not with what Sayso says.
"""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from sayso.core.canonical_json import JsonObject

REVIEWERS = ("anna", "ben", "cleo", "dora")
AGENT_KEY = "demo"
"""The owner of runs that are started with the agent's key."""

AGENTS = ("chaos-continue", "chaos-degrade", "chaos-fail")
_AGENT_WEIGHTS = (80, 14, 6)


class ToolKind(NamedTuple):
    """How a tool behaves, and how often plans call it."""

    idempotent: bool = False
    slow: bool = False
    needs_day: bool = False
    weight: float = 10


TOOLS: Mapping[str, ToolKind] = MappingProxyType(
    {
        "pay": ToolKind(weight=22),
        "pay_slowly": ToolKind(slow=True, weight=0.12),
        "order": ToolKind(idempotent=True, weight=16),
        "order_slowly": ToolKind(idempotent=True, slow=True, weight=2.9),
        "sign": ToolKind(weight=8),
        "reserve": ToolKind(weight=5),
        "invite": ToolKind(needs_day=True, weight=10),
        "guess": ToolKind(idempotent=True, needs_day=True, weight=5),
        "look_up": ToolKind(idempotent=True, weight=12),
        "jot": ToolKind(weight=12),
        "wipe": ToolKind(weight=3),
    }
)
"""Every tool. A third of the calls are idempotent; three in a hundred outlast the lease.

One in eight hundred outlasts the lease and is not idempotent. With a kill every ten runs, many of these are cut off.
They cause nearly all calls in doubt, and no design can avoid them.
"""


NOTIFIED = frozenset({"pay", "pay_slowly", "sign", "reserve"})
"""The tools whose rules in policy.yaml name the channel."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Model):
    """One call that the model requests."""

    call_id: str
    tool: str
    args: JsonObject


class Plan(_Model):
    """The plan of one run."""

    number: int
    agent: str
    owner: str
    turns: tuple[tuple[ScriptedCall, ...], ...]
    cancel_after_s: float | None

    @property
    def calls(self) -> dict[str, ScriptedCall]:
        """Calls by id; an id is unique within a run."""
        return {call.call_id: call for turn in self.turns for call in turn}


def seeded_random(*parts: object) -> Random:
    """Return a generator seeded with the parts: the same parts give the same numbers."""
    return Random(":".join(map(str, parts)))  # noqa: S311  repeatable, not secret


def plan_run(seed: int, number: int) -> Plan:
    """Return the plan of one run."""
    rng = seeded_random(seed, "plan", number)
    turns = tuple(
        tuple(_plan_call(rng, number, turn, index) for index in range(rng.choices((1, 2, 3, 4), (60, 20, 12, 8))[0]))
        for turn in range(rng.choices((1, 2, 3), (65, 25, 10))[0])
    )
    return Plan(
        number=number,
        agent=rng.choices(AGENTS, _AGENT_WEIGHTS)[0],
        owner=AGENT_KEY if rng.random() < 0.8 else rng.choice(REVIEWERS),
        turns=turns,
        cancel_after_s=round(rng.uniform(0, 2), 3) if rng.random() < 0.04 else None,
    )


def _plan_call(rng: Random, number: int, turn: int, index: int) -> ScriptedCall:
    tool = rng.choices([*TOOLS], [kind.weight for kind in TOOLS.values()])[0]
    args: JsonObject = {"account": f"acc-{rng.randrange(1000)}", "amount": rng.randint(1, 900), "note": "⚡ ünï"}
    return ScriptedCall(call_id=f"r{number}t{turn}c{index}", tool=tool, args=args)
