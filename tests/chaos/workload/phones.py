"""Reviewers who decide in their chats: by buttons and replies, once or twice, in time or too late."""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

import httpx
from pydantic import BaseModel, ConfigDict

from sayso.core.clock import monotonic_ms
from sayso.errors import SaysoError
from tests.chaos.evidence.provider_log import CHANNEL
from tests.chaos.workload.provider import CHATS, Provider, SentCard
from tests.fakes.telegram import Message

PATIENCE_S = 8.0
"""How long a reviewer waits for a card or an answer, and then decides in another way."""

LINK_WITHIN_S = 60.0
POLL_S = 0.1
_DECIDED = (f" over {CHANNEL} at ", "Your decision is recorded")

Found = TypeVar("Found")


class _CodeView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    code: str


class Phones:
    """The chats of the reviewers who have linked one."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def link(self, http: httpx.AsyncClient, tokens: dict[str, str]) -> None:
        """Link every chat with a code that its reviewer created."""
        for person, chat in CHATS.items():
            headers = {"Authorization": f"Bearer {tokens[person]}"}
            answer = await http.post("/api/v1/account/contacts/codes", json={"channel": CHANNEL}, headers=headers)
            answer.raise_for_status()
            self._provider.say(chat, f"/start {_CodeView.model_validate_json(answer.content).code}")
            if not await wait_for(partial(self._is_linked, chat), LINK_WITHIN_S):
                raise SaysoError(f"The chat of {person} was not linked within {LINK_WITHIN_S:g} s.")

    def _is_linked(self, chat: int) -> bool:
        return any(one.chat_id == chat and "This chat is linked" in one.text for one in self._provider.messages)

    async def decide(self, person: str, item: tuple[str, str], reason: str | None, rng: Random) -> bool:
        """Approve, or deny with a reason, on the item's card; return whether Sayso confirmed it in time."""
        card = await self._await_card(person, item)
        if card is None:
            return False
        key = self._provider.press_of(card, "Approve" if reason is None else "Deny…")
        if rng.random() < 0.2:
            self._provider.press_of(card, "Approve" if reason is None else "Deny…")
        if reason is not None:
            prompt = await self._await(lambda: self._provider.find_prompt(card))
            if prompt is None:
                return False
            key = self._reply(card, prompt, reason, rng)
        answer = await self._await(lambda: self._provider.told.get(key))
        return answer is not None and any(sign in answer for sign in _DECIDED)

    async def press_late(self, person: str, item: tuple[str, str], rng: Random) -> None:
        """Press a button that the card had, once the item is closed or the reviewer tires of waiting for that."""
        card = await self._await_card(person, item)
        if card is None:
            return
        if rng.random() < 0.7:
            await self._await(lambda: True if not card.message.data else None)
        self._provider.press_of(card, rng.choice([*card.data]))

    def _reply(self, card: SentCard, prompt: Message, reason: str, rng: Random) -> str:
        """Reply once or twice; return the key of the first reply."""
        key = self._provider.reply_of(card, prompt, reason)
        if rng.random() < 0.2:
            self._provider.reply_of(card, prompt, reason)
        return key

    async def _await_card(self, person: str, item: tuple[str, str]) -> SentCard | None:
        card = await self._await(lambda: self._provider.find_card(person, *item))
        return card if card is not None and card.data else None

    async def _await(self, find: Callable[[], Found | None]) -> Found | None:
        await wait_for(lambda: find() is not None, PATIENCE_S)
        return find()


async def wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until the condition holds; False after the timeout."""
    until_ms = monotonic_ms() + timeout_s * 1000
    while not condition():
        if monotonic_ms() > until_ms:
            return False
        await asyncio.sleep(POLL_S)
    return True
