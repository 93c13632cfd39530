"""Reviewers who decide every pending item: together, in conflict, repeatedly, too late, wrongly and in their chats.

The seed fixes what they decide. Every decision has a unique message, which identifies its request in the trail.
"""

import asyncio
from collections.abc import Sequence
from random import Random

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from tests.chaos.evidence.client_log import Exchange
from tests.chaos.workload.clients import Clients, Request
from tests.chaos.workload.phones import Phones
from tests.chaos.workload.plans import AGENT_KEY, NOTIFIED, REVIEWERS, Plan, seeded_random
from tests.chaos.workload.provider import CHATS

PRESS_SHARE = 0.35
"""Share of the items with cards that are decided on one of them."""

LATE_SHARE = 0.5
"""Share of the items with cards, of those decided over the API or by nobody, whose card is pressed afterwards."""

LOOK_UP_SHARE = 0.5
LOOK_UP_S = 4
"""Time to look up a call in doubt: longer than a stopped worker sleeps, so that it may report first."""


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ToolView(_View):
    """The call of an item."""

    name: str
    args: JsonObject


class FallbackView(_View):
    """The decision at the deadline."""

    action: str
    value: JsonValue = None


class QuorumView(_View):
    """The number of approvals needed."""

    approve: int


class TermsView(_View):
    """The terms of an item."""

    quorum: QuorumView
    fallback: FallbackView


class ItemView(_View):
    """An item as a reviewer sees it."""

    item_id: str
    kind: str
    call_id: str
    tool: ToolView
    target_arg: str | None
    terms: TermsView
    digest: str
    doubt: JsonObject | None
    outcome: JsonObject | None


class RunRefView(_View):
    """The run of a suspension."""

    id: str


class SuspensionView(_View):
    """A pending suspension."""

    id: str
    run: RunRefView
    items: tuple[ItemView, ...]


class InboxView(_View):
    """A page of pending suspensions."""

    suspensions: tuple[SuspensionView, ...] = Field(default=())


async def review(clients: Clients, phones: Phones, plan: Plan, suspension: SuspensionView, seed: int) -> None:
    """Decide all open items of a suspension concurrently."""
    clients.note(
        Exchange(
            kind="view",
            run=plan.number,
            at_ms=now_ms(),
            done_ms=now_ms(),
            actor=REVIEWERS[0],
            run_id=suspension.run.id,
            suspension_id=suspension.id,
            status=200,
            answer=suspension.model_dump(mode="json", include={"items"}),
        )
    )
    reviews = [
        _ItemReview(clients, phones, plan, suspension, item, seed).run()
        for item in suspension.items
        if item.outcome is None
    ]
    await asyncio.gather(*reviews)


class _ItemReview:
    """All decisions on one item."""

    def __init__(
        self, clients: Clients, phones: Phones, plan: Plan, suspension: SuspensionView, item: ItemView, seed: int
    ) -> None:
        self._clients = clients
        self._phones = phones
        self._plan = plan
        self._suspension = suspension
        self._item = item
        self._rng = seeded_random(seed, "review", item.call_id, item.doubt is not None)
        self._people = self._rng.sample([name for name in REVIEWERS if name != plan.owner], 3)
        self._count = 0

    async def run(self) -> None:
        """Send the decisions that the seed selects. The item ends up decided, or it times out soon."""
        if self._item.doubt is not None:
            if self._rng.random() < LOOK_UP_SHARE:
                await asyncio.sleep(LOOK_UP_S)
            await self._decide(self._people[0], _choose(self._rng))
            return
        if self._rng.random() < 0.15:
            await self._mistake()
        linked = [name for name in self._people if name in CHATS and self._item.tool.name in NOTIFIED]
        if linked and self._rng.random() < PRESS_SHARE:
            await self._decide_in_chat(linked[0])
            return
        late = linked[:1] if self._rng.random() < LATE_SHARE else []
        await asyncio.gather(self._decide_over_api(), *(self._press_late(person) for person in late))

    async def _decide_in_chat(self, person: str) -> None:
        """Decide on a card; a second person joins over the API if needed, and others decide if nothing comes of it."""
        reason = self._message() if self._rng.random() < 0.2 else None
        about = self._suspension.id, self._item.item_id
        if self._item.terms.quorum.approve > 1:
            other = next(name for name in self._people if name != person)
            await self._decide(other, {"action": "approve", "message": self._message()})
        if not await self._phones.decide(person, about, reason, self._rng) or self._rng.random() < 0.1:
            await self._decide_over_api()

    async def _press_late(self, person: str) -> None:
        await self._phones.press_late(person, (self._suspension.id, self._item.item_id), self._rng)

    async def _decide_over_api(self) -> None:
        """Decide over the API, alone or together; some items with short deadlines are left to their fallback."""
        if self._item.tool.name in ("reserve", "guess") and self._rng.random() < 0.5:
            return
        if self._item.terms.quorum.approve > 1:
            await self._decide_together()
        elif self._rng.random() < 0.2:
            await asyncio.gather(*(self._decide(person, self._draw_decision()) for person in self._people))
        else:
            await self._decide_alone()

    async def _decide_alone(self) -> None:
        """Decide as one person; sometimes twice, too late, or with a changed decision under the same key."""
        decision, key = self._draw_decision(), self._key()
        copies = 2 if self._rng.random() < 0.15 else 1
        await asyncio.gather(*(self._decide(self._people[0], decision, key) for _ in range(copies)))
        match self._rng.randrange(10):
            case 0:
                await self._decide(self._people[0], decision, key)
            case 1:
                await self._decide(self._people[1], self._draw_decision())
            case 2:
                await self._decide(self._people[0], self._draw_decision(), key)

    async def _decide_together(self) -> None:
        """Decide as several people at once, one of them twice."""
        decision: JsonObject = {"action": "approve"} if self._rng.random() < 0.85 else {"action": "deny"}
        people = [*self._people, self._people[0]]
        await asyncio.gather(*(self._decide(person, {**decision, "message": self._message()}) for person in people))

    async def _mistake(self) -> None:
        """Send a decision that must be refused."""
        match self._rng.randrange(4):
            case 0:
                await self._decide(AGENT_KEY, self._draw_decision())
            case 1:
                await self._decide(self._plan.owner, self._draw_decision())
            case 2:
                await self._decide(self._people[0], {**self._draw_decision(), "digest": "0" * 64})
            case _ if self._item.kind == "approval":
                edited = {**self._item.tool.args, "amount": 5000}
                await self._decide(self._people[0], {"action": "approve", "args": edited, "message": self._message()})

    def _draw_decision(self) -> JsonObject:
        """Return a random decision."""
        message = self._message()
        if self._rng.random() < 0.15:
            return {"action": "deny", "message": message}
        if self._item.target_arg is not None:
            return {"action": "value", "value": f"2027-{self._rng.randint(10, 12)}-01", "message": message}
        if self._rng.random() < 0.2:
            args = {**self._item.tool.args, "amount": self._rng.randint(1, 900)}
            return {"action": "approve", "args": args, "message": message}
        return {"action": "approve", "message": message}

    async def _decide(self, person: str, decision: JsonObject, key: str | None = None) -> None:
        path = f"/api/v1/suspensions/{self._suspension.id}/items/{self._item.item_id}/decision"
        request = Request(
            kind="decide",
            run=self._plan.number,
            actor=person,
            path=path,
            key=key or self._key(),
            body={"digest": self._item.digest, **decision},
            run_id=self._suspension.run.id,
            suspension_id=self._suspension.id,
            item_id=self._item.item_id,
        )
        await self._clients.send(request)

    def _key(self) -> str:
        self._count += 1
        return f"{self._suspension.id}-{self._item.item_id}-{self._item.digest[:8]}-{self._count}"

    def _message(self) -> str:
        self._count += 1
        return f"message {self._count}"


def _choose(rng: Random) -> JsonObject:
    """Return a random decision on a call in doubt."""
    choices: Sequence[JsonObject] = (
        {"choice": "skip"},
        {"choice": "skip", "result": "looked up"},
        {"choice": "run_again"},
        {"choice": "fail"},
    )
    return {"action": "value", "value": rng.choices(choices, (40, 25, 30, 5))[0], "message": "in doubt"}
