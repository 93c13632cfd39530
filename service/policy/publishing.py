"""The rules in force: the newest that any service or worker has published.

Each process publishes the rules of its own file and reads the version in force twice a second. If that is another
version, it evaluates calls by the published rules, so that all processes decide alike.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog
from pydantic import ValidationError

from sayso.clock import monotonic_ms
from sayso.errors import Unavailable
from sayso.policy.engine import Policy
from service.logs import Trouble
from service.policy.loading import Rulebook
from service.store.rules import Holder, RuleStore

EVERY_S = 0.5
_REPORTED_EVERY_MS = 5_000

_LOG = structlog.get_logger(__name__)


class RulesInForce:
    """The rules that one process evaluates; outside of `kept`, those of its own file."""

    def __init__(self, store: RuleStore, rulebook: Rulebook, file: Path) -> None:
        self._store = store
        self._rulebook = rulebook
        self._file = f"{os.uname().nodename}:{file}"
        self._reported: str | None = None
        self._reported_at_ms = 0.0
        self._newest: Policy | None = None
        self._fault = ""

    def policy(self) -> Policy:
        """Return the rules in force; raises `Unavailable` when they cannot be read."""
        own = self._rulebook.refresh()
        if own.version != self._reported:
            return own  # the file has just changed: its rules are the newest
        if self._fault:
            raise Unavailable(self._fault)
        return self._newest or own

    @asynccontextmanager
    async def kept(self, process: str) -> AsyncIterator[None]:
        """Publish and follow the rules during the block."""
        named, trouble = f"{process} {os.uname().nodename}:{os.getpid()}", Trouble("rules_not_compared")
        await self._try(named, trouble)
        ending = asyncio.Event()  # a cancellation may get lost during a command
        following = asyncio.create_task(self._follow(named, trouble, ending))
        try:
            yield
        finally:
            ending.set()
            await asyncio.wait([following])
            with suppress(Unavailable):
                await self._store.remove(named)

    async def compare(self, process: str) -> None:
        """Publish the rules of this process if due, and adopt newer ones."""
        own = self._rulebook.refresh()
        version = await self._publish(Holder(process, self._file, own.version), own)
        if version == own.version:
            self._newest, self._fault = None, ""
        elif self._newest is None or self._newest.version != version:
            await self._adopt()
        self._reported = own.version

    async def list_holders(self) -> tuple[str | None, list[Holder]]:
        """Return the version in force, and the version of each live process."""
        return await self._store.read_version(), await self._store.list_holders()

    async def count_hits(self, days: int) -> dict[str, int]:
        """Return how many calls each rule decided in the last days."""
        return await self._store.count_hits(days)

    async def count_shadow_hits(self, rule_id: str, days: int) -> dict[str, int]:
        """Return how often a shadow rule would have taken each action in the last days; `failed` counts errors."""
        return await self._store.count_shadow_hits(rule_id, days)

    async def list_asked(self, rule_id: str) -> list[tuple[str, str]]:
        """Return the suspension and item ids of the last items that the rule asked for."""
        return await self._store.list_asked(rule_id)

    def read_source(self) -> tuple[Path, bytes] | None:
        """Return this process's file and its bytes; None where the rules in force are of another file."""
        found = self._rulebook.read_source()
        return found if self.policy().version == self._rulebook.policy.version else None

    async def _publish(self, holder: Holder, own: Policy) -> str:
        new = holder.version != self._reported
        if not new and monotonic_ms() - self._reported_at_ms < _REPORTED_EVERY_MS:
            version = await self._store.read_version()
            if version is not None:
                return version
        how = "held" if not new else "start" if self._reported is None else "changed"
        version, alive = await self._store.publish(holder, how, own.model_dump_json() if new else "")
        if not version or (version != holder.version and not alive):
            version, _ = await self._store.publish(holder, "start", own.model_dump_json())
        self._reported_at_ms = monotonic_ms()
        return version

    async def _adopt(self) -> None:
        version, rules = await self._store.read_rules()
        try:
            newest = Policy.model_validate_json(rules)
        except ValidationError:
            newest = None
        if newest is None or newest.version != version:
            self._fault = (
                f"The rules in force, version {version}, cannot be read by this process, so it evaluates no calls. "
                "Run the same version of Sayso everywhere."
            )
            _LOG.error("rules_unreadable", version=version)
            return
        self._newest, self._fault = newest, ""
        _LOG.warning("rules_of_another_file", in_force=version, file=self._file)

    async def _follow(self, process: str, trouble: Trouble, ending: asyncio.Event) -> None:
        while not ending.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await ending.wait()
                    return
            await self._try(process, trouble)

    async def _try(self, process: str, trouble: Trouble) -> None:
        try:
            await self.compare(process)
            trouble.over()
        except Unavailable as error:
            trouble.note(error)
