"""Calls of both clients that open a person's session and administer keys."""

from abc import ABC, abstractmethod
from typing import TypeVar

from sayso.canonical_json import JsonObject
from sayso.client import requests, retries
from sayso.client.responses import Key, KeyPage, SessionSeen
from sayso.client.retries import Flow, Patience

T = TypeVar("T")


class KeyCalls(ABC):
    """Sessions and keys, for a client that waits for each answer."""

    patience: Patience
    key: str | None

    @abstractmethod
    def run(self, flow: Flow[T]) -> T:
        """Do what a flow says, to its end."""

    def sign_in(self, name: str, password: str) -> SessionSeen:
        """Open a person's session, which this client uses from now on."""
        opened = self.run(retries.send(self.patience, requests.sign_in(name, password)))
        self.key = opened.token
        return opened

    def keys(self) -> KeyPage:
        """Return all keys; for admins."""
        return self.run(retries.send(self.patience, requests.list_keys()))

    def create_key(
        self, name: str, kind: str = "agent", *, context: JsonObject | None = None, key: str | None = None
    ) -> Key:
        """Make a key; it is shown this once. Rules read `context` as what is known of its holder."""
        return self.run(retries.send(self.patience, requests.create_key(name, kind, context, key)))

    def rotate_key(self, key_id: str, overlap_s: int = 3600, *, key: str | None = None) -> Key:
        """Make the next key; the one before holds beside it for a while."""
        return self.run(retries.send(self.patience, requests.rotate_key(key_id, overlap_s, key)))

    def revoke_key(self, key_id: str) -> Key:
        """Make a key fail everywhere within a second."""
        return self.run(retries.send(self.patience, requests.revoke_key(key_id)))


class AsyncKeyCalls(ABC):
    """Sessions and keys, for asyncio."""

    patience: Patience
    key: str | None

    @abstractmethod
    async def run(self, flow: Flow[T]) -> T:
        """Do what a flow says, to its end."""

    async def sign_in(self, name: str, password: str) -> SessionSeen:
        """Open a person's session, which this client uses from now on."""
        opened = await self.run(retries.send(self.patience, requests.sign_in(name, password)))
        self.key = opened.token
        return opened

    async def keys(self) -> KeyPage:
        """Return all keys; for admins."""
        return await self.run(retries.send(self.patience, requests.list_keys()))

    async def create_key(
        self, name: str, kind: str = "agent", *, context: JsonObject | None = None, key: str | None = None
    ) -> Key:
        """Make a key; it is shown this once. Rules read `context` as what is known of its holder."""
        return await self.run(retries.send(self.patience, requests.create_key(name, kind, context, key)))

    async def rotate_key(self, key_id: str, overlap_s: int = 3600, *, key: str | None = None) -> Key:
        """Make the next key; the one before holds beside it for a while."""
        return await self.run(retries.send(self.patience, requests.rotate_key(key_id, overlap_s, key)))

    async def revoke_key(self, key_id: str) -> Key:
        """Make a key fail everywhere within a second."""
        return await self.run(retries.send(self.patience, requests.revoke_key(key_id)))
