"""A gated AFK tool that imports LangChain only when it runs, in LangChain's environment."""

import asyncio
import sys
from typing import Any

from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.afk import PayArgs, make
from tests.frameworks.late_agents.variants import play_all


async def imported(args: PayArgs) -> str:
    """Pay through an agent of a framework that was not imported before."""
    from tests.frameworks.late_agents import langgraph

    return await langgraph.built(args.to)


async def main() -> None:
    """Play it."""
    assert not any(name.startswith("langchain") for name in sys.modules)
    tools: dict[str, Any] = {"imported": imported}
    print_json({"played": await play_all(make, tools)})


if __name__ == "__main__":
    asyncio.run(main())
