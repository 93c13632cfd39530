"""An agent whose module fails in all ways that Python and asyncio print on standard error."""

import asyncio
import gc
import threading
import warnings

from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, ScriptedModel
from tests.logs import CANARY


class _Faulty:
    def __del__(self) -> None:
        raise ValueError(CANARY)


def _fail() -> None:
    raise ValueError(CANARY)


async def _abandon_tasks() -> None:
    async def fail() -> None:
        raise ValueError(CANARY)

    abandoned = asyncio.create_task(fail())
    await asyncio.wait((abandoned,))
    asyncio.get_running_loop().call_soon(_fail)
    await asyncio.sleep(0)


def _fail_each_way() -> None:
    asyncio.run(_abandon_tasks())
    _Faulty()
    gc.collect()
    warnings.warn("This warning is printed.\nIn two lines.", stacklevel=1)


thread = threading.Thread(target=_fail_each_way)
thread.start()
thread.join()
failing = threading.Thread(target=_fail)
failing.start()
failing.join()
agent = Agent(name="faulty", instructions="Fail.", tools=(), model=ScriptedModel([ModelTurn(text="Done.")]))
