"""A running Sayso with a provisioner and a reviewer."""

import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

PATIENCE_S = 60

Thing = TypeVar("Thing")


class Desk:
    """Clients of a running Sayso."""

    def __init__(self, url: str, password: str) -> None:
        self.url = url
        self.base_url = f"{url}/api/aap"
        session = httpx.post(f"{url}/api/v1/sessions", json={"name": "admin", "password": password}).raise_for_status()
        self.reviewer = httpx.Client(
            base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {session.json()['token']}"}, timeout=30
        )
        key = self.reviewer.post("/keys", json={"name": f"platform-{uuid.uuid4().hex[:8]}", "kind": "provisioner"})
        self.provisioner_token: str = key.raise_for_status().json()["key"]

    def provision(self, **members: Any) -> dict[str, Any]:
        """Create an instance."""
        headers = {"Authorization": f"Bearer {self.provisioner_token}", "Idempotency-Key": str(uuid.uuid4())}
        created = httpx.post(f"{self.base_url}/v1/instances", json=members, headers=headers, timeout=40)
        assert created.status_code == 201, created.text
        answer: dict[str, Any] = created.json()
        return answer

    def delete(self, instance_id: str) -> None:
        """Delete an instance."""
        headers = {"Authorization": f"Bearer {self.provisioner_token}"}
        assert httpx.delete(f"{self.base_url}/v1/instances/{instance_id}", headers=headers).status_code == 204

    def waiting(self, tool: str) -> dict[str, Any]:
        """Wait for the pending suspension with a call of this tool, and return it."""

        def find() -> dict[str, Any] | None:
            found = self.reviewer.get("/suspensions", params={"limit": 200}).raise_for_status().json()["suspensions"]
            return next((one for one in found if one["items"][0]["tool"]["name"] == tool), None)

        return wait_until(find)

    def decide(self, tool: str, action: str, message: str | None = None) -> None:
        """Decide the pending call of this tool."""
        suspension = self.waiting(tool)
        item = suspension["items"][0]
        body = {"action": action, "digest": item["digest"], **({"message": message} if message else {})}
        place = f"/suspensions/{suspension['id']}/items/{item['item_id']}/decision"
        self.reviewer.post(place, json=body).raise_for_status()


def wait_until(condition: Callable[[], Thing | None]) -> Thing:
    """Return the first result of `condition` that is not None."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if (found := condition()) is not None:
            return found
        time.sleep(0.05)  # between looks
    raise AssertionError(f"no result within {PATIENCE_S} s")
