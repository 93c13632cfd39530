"""A running desk with rules of a test, as the commands see it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from service.assembly import assemble
from service.core.settings import Settings
from tests.builders import make_agent, make_person
from tests.service.servers import served

Desk = tuple[str, str, str, str]
"""The URL of a desk, the key of an agent, and the token of its reviewer, who is its admin, too."""


def serve_rules(rules: str, store_url: str, folder: Path) -> Iterator[Desk]:
    """Serve a desk with these rules, an agent's key and a reviewer, until the test ends."""
    policy = folder / "policy.yaml"
    policy.write_text(rules)
    settings = Settings(redis_url=store_url, policy=policy)

    async def furnish() -> tuple[str, str]:
        async with assemble(settings) as wiring:
            return await make_agent(wiring, "bot"), await make_person(wiring, "anna")

    with served(settings) as url:
        agent, anna = asyncio.run(furnish())
        yield url, agent, anna, anna
