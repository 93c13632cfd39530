"""Runs an agent under a rule on its tokens, with a model that reports them and with one that does not."""

import asyncio
from collections.abc import Callable

from sayso.core.policy.engine import Policy
from sayso.core.policy.events import ModelPrice
from sayso.core.policy.rules import Action
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import play_judged, print_json
from tests.sayso.rule_builders import policy, rule

CALLS, GIVEN, MADE = 4, 100, 10
"""The tool calls of a run, one a turn, and the tokens of each model call."""

LONG = policy(rule("long-runs", "request_approval", when="run.tokens > 250"))
DEAR = Policy(
    rules=(rule("dear-runs", "request_approval", when="run.cost > 0.00025"),),
    default=Action.ALLOW,
    model_prices={"player*": ModelPrice(input=1, output=1)},
)


def print_counted(make: Callable[[bool], FrameworkAgent], inner: FrameworkAgent | None = None) -> None:
    """Print what the rules saw and did in runs of `make(reports)`, and of an agent whose tool asks another model."""

    async def count() -> None:
        print_json(
            {
                "reported": await play_judged(make(True), LONG),
                "priced": await play_judged(make(True), DEAR),
                "missing": await play_judged(make(False), LONG),
                "inner": await play_judged(inner, LONG) if inner is not None else None,
            }
        )

    asyncio.run(count())
