"""A state machine of the whole desk against a real server, beside a simple model.

Everybody who can change a run does so in any order, at any time, with lost replies. Each step must give the model's
result, and every record, index and trail must match afterwards.
"""

import asyncio
from functools import partial
from typing import cast

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from service.core.store.connection.connecting import connect
from service.core.store.tenants import Connections
from tests.proofs.clock_steps import ClockSteps
from tests.proofs.request_steps import RequestSteps
from tests.proofs.strategies import Environment
from tests.proofs.worker_steps import WorkerSteps

EXAMPLES, STEPS = 100, 40


class Machine(RequestSteps, ClockSteps, WorkerSteps):
    """All rules of the state machine."""


def test_desk_agrees_with_the_model(clean_store_url: str) -> None:
    with asyncio.Runner() as loop:
        redis = connect(clean_store_url)
        environment = Environment(loop, redis, Connections(redis))
        try:
            run_state_machine_as_test(
                cast(type[Machine], partial(Machine, environment)),
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=STEPS,
                    deadline=None,
                    print_blob=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            environment.connections.close()
            loop.run(environment.redis.aclose())
