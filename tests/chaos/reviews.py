"""Answer everything that is asked during a storm, as people do: together, against each other, twice, late and wrongly.

What is said to an item follows from the storm's seed. Every word carries a message of its own, so that the trail tells
which of several requests it is.
"""

import asyncio
from collections.abc import Sequence
from random import Random

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.canonical_json import JsonObject
from sayso.clock import now_ms
from tests.chaos.clients import Clients, Errand
from tests.chaos.logs import Said
from tests.chaos.plans import AGENT_KEY, REVIEWERS, Plan, dice

LOOKS_UP = 0.5
LOOK_UP_S = 4
"""A person who looks up what a call in doubt has done takes longer than a stopped worker sleeps, which may then say."""


class _Seen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ToolSeen(_Seen):
    """The call an item is about."""

    name: str
    args: JsonObject


class FallbackSeen(_Seen):
    """What decides when nobody has."""

    action: str
    value: JsonValue = None


class QuorumSeen(_Seen):
    """How many have to approve."""

    approve: int


class TermsSeen(_Seen):
    """Under which conditions an item is asked."""

    quorum: QuorumSeen
    fallback: FallbackSeen


class ItemSeen(_Seen):
    """One thing that is asked, as a reviewer sees it."""

    item_id: str
    kind: str
    call_id: str
    tool: ToolSeen
    target_arg: str | None
    terms: TermsSeen
    digest: str
    doubt: JsonObject | None
    outcome: JsonObject | None


class RunRefSeen(_Seen):
    """Whose pause it is."""

    id: str


class SuspensionSeen(_Seen):
    """A pause that waits."""

    id: str
    run: RunRefSeen
    items: tuple[ItemSeen, ...]


class InboxSeen(_Seen):
    """What waits for people."""

    suspensions: tuple[SuspensionSeen, ...] = Field(default=())


async def review(clients: Clients, plan: Plan, seen: SuspensionSeen, seed: int) -> None:
    """Answer every open item of a pause that is shown, all of them at the same time."""
    clients.note(
        Said(
            kind="see",
            run=plan.number,
            at_ms=now_ms(),
            done_ms=now_ms(),
            actor=REVIEWERS[0],
            run_id=seen.run.id,
            suspension_id=seen.id,
            status=200,
            answer=seen.model_dump(mode="json", include={"items"}),
        )
    )
    answering = [_Reviewing(clients, plan, seen, item, seed).answer() for item in seen.items if item.outcome is None]
    await asyncio.gather(*answering)


class _Reviewing:
    """All that is said to one item."""

    def __init__(self, clients: Clients, plan: Plan, seen: SuspensionSeen, item: ItemSeen, seed: int) -> None:
        self._clients = clients
        self._plan = plan
        self._seen = seen
        self._item = item
        self._throw = dice(seed, "review", item.call_id, item.doubt is not None)
        self._people = self._throw.sample([name for name in REVIEWERS if name != plan.owner], 3)
        self._words = 0

    async def answer(self) -> None:
        """Say what the dice want said; in the end the item is decided, or its time runs out soon."""
        if self._item.doubt is not None:
            if self._throw.random() < LOOKS_UP:
                await asyncio.sleep(LOOK_UP_S)
            await self._say(self._people[0], _choose(self._throw))
            return
        if self._throw.random() < 0.15:
            await self._mistake()
        if self._item.tool.name in ("reserve", "guess") and self._throw.random() < 0.5:
            return
        if self._item.terms.quorum.approve > 1:
            await self._decide_together()
        elif self._throw.random() < 0.2:
            await asyncio.gather(*(self._say(person, self._word()) for person in self._people))
        else:
            await self._decide_alone()

    async def _decide_alone(self) -> None:
        """One says it; now and then the request goes out twice, or somebody comes too late, or changes the words."""
        word, key = self._word(), self._key()
        twice = 2 if self._throw.random() < 0.15 else 1
        await asyncio.gather(*(self._say(self._people[0], word, key) for _ in range(twice)))
        match self._throw.randrange(10):
            case 0:
                await self._say(self._people[0], word, key)
            case 1:
                await self._say(self._people[1], self._word())
            case 2:
                await self._say(self._people[0], self._word(), key)

    async def _decide_together(self) -> None:
        """Two are needed, and all of them talk at once, one of them twice."""
        word: JsonObject = {"action": "approve"} if self._throw.random() < 0.85 else {"action": "deny"}
        people = [*self._people, self._people[0]]
        await asyncio.gather(*(self._say(person, {**word, "message": self._message()}) for person in people))

    async def _mistake(self) -> None:
        """Try what must be refused."""
        match self._throw.randrange(4):
            case 0:
                await self._say(AGENT_KEY, self._word())
            case 1:
                await self._say(self._plan.owner, self._word())
            case 2:
                await self._say(self._people[0], {**self._word(), "digest": "0" * 64})
            case _ if self._item.kind == "approval":
                edited = {**self._item.tool.args, "amount": 5000}
                await self._say(self._people[0], {"action": "approve", "args": edited, "message": self._message()})

    def _word(self) -> JsonObject:
        """Return one reviewer's word: yes, no, or otherwise."""
        message = self._message()
        if self._throw.random() < 0.15:
            return {"action": "deny", "message": message}
        if self._item.target_arg is not None:
            return {"action": "value", "value": f"2027-{self._throw.randint(10, 12)}-01", "message": message}
        if self._throw.random() < 0.2:
            args = {**self._item.tool.args, "amount": self._throw.randint(1, 900)}
            return {"action": "approve", "args": args, "message": message}
        return {"action": "approve", "message": message}

    async def _say(self, person: str, word: JsonObject, key: str | None = None) -> None:
        path = f"/api/v1/suspensions/{self._seen.id}/items/{self._item.item_id}/decision"
        errand = Errand(
            kind="decide",
            run=self._plan.number,
            actor=person,
            path=path,
            key=key or self._key(),
            body={"digest": self._item.digest, **word},
            run_id=self._seen.run.id,
            suspension_id=self._seen.id,
            item_id=self._item.item_id,
        )
        await self._clients.run(errand)

    def _key(self) -> str:
        self._words += 1
        return f"{self._seen.id}-{self._item.item_id}-{self._item.digest[:8]}-{self._words}"

    def _message(self) -> str:
        self._words += 1
        return f"word {self._words}"


def _choose(throw: Random) -> JsonObject:
    """Return what becomes of a call that may already have run."""
    choices: Sequence[JsonObject] = (
        {"choice": "skip"},
        {"choice": "skip", "result": "looked up"},
        {"choice": "run_again"},
        {"choice": "fail"},
    )
    return {"action": "value", "value": throw.choices(choices, (40, 25, 30, 5))[0], "message": "a doubt"}
