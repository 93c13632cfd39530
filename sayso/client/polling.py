"""What clients have for runs whose calls they run themselves: consume the leave to start a call, report its outcome."""

from abc import ABC, abstractmethod
from typing import TypeVar

from pydantic import JsonValue

from sayso.client import requests, retries
from sayso.client.responses import RedeemedItem, Suspension
from sayso.client.retries import Flow, Patience
from sayso.records.terms import REPORT_WITHIN_S

T = TypeVar("T")


class Polling(ABC):
    """The calls of a suspension in mode `poll`, for a client that waits for each answer."""

    patience: Patience

    @abstractmethod
    def run(self, flow: Flow[T]) -> T:
        """Do what a flow says, to its end."""

    def redeem(
        self, suspension_id: str, item_id: str, key: str, report_within_s: int = REPORT_WITHIN_S
    ) -> RedeemedItem:
        """Spend the leave to run a call once, right before it starts; the answer has the arguments to run.

        `key` names this one try: the same key again gets the same answer, any other raises `AlreadyRedeemed`.
        """
        return self.run(retries.send(self.patience, requests.redeem(suspension_id, item_id, key, report_within_s)))

    def outcome(
        self,
        suspension_id: str,
        item_id: str,
        key: str,
        *,
        success: bool = True,
        output: JsonValue = None,
        error: str | None = None,
    ) -> Suspension:
        """Report how a call ended, under the key that consumed it."""
        one = requests.report_outcome(suspension_id, item_id, key, success, output, error)
        return self.run(retries.send(self.patience, one))


class AsyncPolling(ABC):
    """The calls of a suspension in mode `poll`, for asyncio."""

    patience: Patience

    @abstractmethod
    async def run(self, flow: Flow[T]) -> T:
        """Do what a flow says, to its end."""

    async def redeem(
        self, suspension_id: str, item_id: str, key: str, report_within_s: int = REPORT_WITHIN_S
    ) -> RedeemedItem:
        """Spend the leave to run a call once, right before it starts; the answer has the arguments to run.

        `key` names this one try: the same key again gets the same answer, any other raises `AlreadyRedeemed`.
        """
        one = requests.redeem(suspension_id, item_id, key, report_within_s)
        return await self.run(retries.send(self.patience, one))

    async def outcome(
        self,
        suspension_id: str,
        item_id: str,
        key: str,
        *,
        success: bool = True,
        output: JsonValue = None,
        error: str | None = None,
    ) -> Suspension:
        """Report how a call ended, under the key that consumed it."""
        one = requests.report_outcome(suspension_id, item_id, key, success, output, error)
        return await self.run(retries.send(self.patience, one))
