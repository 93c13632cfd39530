"""Whole installations with channels, people linked to addresses, and the tables of their figures."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from demo.stacks import Stack, running_stack
from sayso.core.clock import new_secret
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import COUNTS, MOST, UNLIMITED
from service.core.wiring import Wiring

_QUIET = {
    "SAYSO_WORKERS": "1",
    "SAYSO_AGENTS": "benchmarks.agents:bench",
    "SAYSO_MODEL_URL": "http://127.0.0.1:9/v1",
    "SAYSO_LOG_LEVEL": "ERROR",
    **UNLIMITED,
}


@contextmanager
def running_channels(home: Path, channels: Mapping[str, Any], policy: Mapping[str, Any]) -> Iterator[Stack]:
    """Run a whole Sayso with these channels and rules: service, clock, worker and store, under supervision."""
    home.mkdir(parents=True, exist_ok=True)
    files = {"SAYSO_CHANNELS": home / "channels.yaml", "SAYSO_POLICY": home / "policy.yaml"}
    for file, content in zip(files.values(), ({"channels": dict(channels)}, dict(policy)), strict=True):
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        file.chmod(0o600)
    with running_stack(home, {**_QUIET, **{name: str(file) for name, file in files.items()}}) as stack:
        yield stack


@asynccontextmanager
async def opened(stack: Stack) -> AsyncIterator[Wiring]:
    """Open the store of an installation, without limits on what may wait."""
    settings = Settings(home=stack.home, policy=stack.home / "policy.yaml", port=stack.port)
    async with assemble(settings.model_copy(update=dict.fromkeys(COUNTS, MOST))) as wiring:
        yield wiring


async def link(wiring: Wiring, person: str, addresses: Mapping[str, str]) -> None:
    """Create a reviewer, linked to an address on each channel."""
    await wiring.reviewers.add(person, new_secret(), ("reviewer",))
    for channel, address in addresses.items():
        code = await wiring.contacts.create_code(person, channel)
        await wiring.contacts.redeem_code(channel, code.code, address, person)


class Row(NamedTuple):
    """One figure, and the bound that it must not exceed."""

    name: str
    value: float
    bound: float | None = None

    @property
    def broken(self) -> bool:
        """Whether the figure exceeds its bound."""
        return self.bound is not None and self.value > self.bound


def report(rows: Sequence[Row]) -> int:
    """Print the figures as a table; return 1 if one exceeds its bound."""
    print("\n| measure | value | bound |\n| --- | --- | --- |")
    for row in rows:
        bound = "" if row.bound is None else f"at most {row.bound:,g}{' (broken)' if row.broken else ''}"
        print(f"| {row.name} | {row.value:,.6g} | {bound} |")
    return int(any(row.broken for row in rows))
