"""A browser that signs in with a provider, step by step, and the file that names the provider."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from httpx import AsyncClient, Response

from service.core.store.activity import Activity
from tests.fakes.provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.service.edge.web.sites import Visit

BEGIN, BACK = "/sign-in/company", "/sign-in/company/callback"


def write_file(folder: Path, issuer: str, plan: dict[str, Any] | None = None, **fields: Any) -> Path:
    """Write the file of providers, with one provider."""
    row = {"id": "company", "title": "Company", "issuer": issuer, "client_id": CLIENT_ID}
    row |= {"client_secret": CLIENT_SECRET, **fields}
    path = folder / "sign-in.yaml"
    path.write_text(yaml.safe_dump({"providers": [row], **(plan or {})}))
    return path


@dataclass(frozen=True)
class Browser:
    """A browser of somebody at the provider."""

    visit: Visit
    provider: FakeProvider

    @property
    def client(self) -> AsyncClient:
        return self.visit.client

    async def begin(self, place: str = "/") -> str:
        """Begin to sign in; return the address at the provider."""
        answer = await self.client.get(BEGIN, params={"next": place} if place != "/" else {})
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def come_back(self, location: str, **changed: str) -> Response:
        """Consent at the provider and follow its redirect."""
        return await self.client.get(self.provider.consent(location, **changed))

    async def sign_in(self, place: str = "/") -> Response:
        return await self.come_back(await self.begin(place))

    async def read_name(self) -> str | None:
        """Return who is signed in."""
        page = await self.client.get("/me")
        if page.status_code != 200:
            return None
        return page.text.split("Signed in as ")[1].split(":")[0].strip()

    async def read_log(self) -> list[Activity]:
        return (await self.visit.wiring.activity.read_page(0, 100)).entries
