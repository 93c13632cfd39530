"""Resume a suspended run in another process: reads a state from stdin, writes the final state to stdout."""

import asyncio
import sys

from sayso.core.canonical_json import JsonObject
from sayso.runner.batches import Resumption
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState
from tests.sayso.runners import POLICY, Ledger, approve, give, make_agent, turn

CALLS: tuple[tuple[str, JsonObject], ...] = (
    ("look", {"order": "A"}),
    ("refund", {"order": "A", "amount": 5}),
    ("pay", {"order": "A"}),
    ("drop", {}),
)


def answer_all(state: RunState) -> dict[int, Resumption]:
    """Approve the refund with a smaller amount, and give the payment its code."""
    assert state.batch is not None
    return {
        ask.index: approve(ask, amount=1) if ask.tool.name == "refund" else give(ask, "1234")
        for ask in state.batch.drafts
    }


async def main() -> None:
    """Drive the run to its end."""
    state = RunState.model_validate_json(sys.stdin.buffer.read())
    agent = make_agent([], turn(*CALLS))
    end = await drive(ModelRun(agent, state), policy=POLICY, journal=Ledger("run_1"), outcomes=answer_all(state))
    assert isinstance(end, RunEnded)
    sys.stdout.write(end.state.model_dump_json())


if __name__ == "__main__":
    asyncio.run(main())
