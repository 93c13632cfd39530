"""Admins create, rotate and revoke keys; a secret is shown once."""

import re

from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, Visit, add_people, visit
from tests.service.edge.web.test_freezes import make_admin


async def create(admin: Visit, name: str = "support-bot", kind: str = "agent") -> str:
    """Create a key on the page; return its secret."""
    page = await admin.send("/keys", 200, name=name, kind=kind)
    (secret,) = re.findall(r'id="secret">([\w-]+)<', page)
    return str(secret)


async def test_reviewer_cannot_manage_keys(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.read("/keys", 403)
        await anna.send("/keys", 403, name="support-bot", kind="agent")
        await anna.send("/keys/key_none", 403, act="revoke")
        assert await anna.wiring.api_keys.list_all() == []


async def test_new_key_is_shown_once_with_a_command(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        form = {"csrf": CSRF, "name": "support-bot", "kind": "agent"}
        answer = await anna.client.post("/keys", data=form, headers=OWN)
        (secret,) = re.findall(r'id="secret">(sayso_agent_[\w-]+)<', answer.text)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert f"curl -H &#34;Authorization: Bearer {secret}&#34; http://127.0.0.1:8321/api/v1/agents" in answer.text
        page = await anna.read("/keys")
        assert secret not in page
        assert 'Last used"><span class="quiet">never' in page
        bearer = {"Authorization": f"Bearer {secret}"}
        assert (await anna.client.get("/api/v1/agents", headers=bearer)).status_code == 200
        assert 'Last used"><time' in await anna.read("/keys")


async def test_refused_key_keeps_the_input(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await add_people(anna.wiring, "ben")
        page = await anna.send("/keys", 422, name="support-bot")
        assert "Choose the kind of the key." in page
        assert 'value="support-bot"' in page
        assert "names must not be confused" in await anna.send("/keys", 409, name="ben", kind="agent")
        assert "Only ben can make a key" in await anna.send("/keys", 403, name="ben", kind="reviewer")
        await anna.send("/keys", 403, name="support-bot", kind="agent", csrf="x")
        for kind, name in (("reviewer", "anna"), ("provisioner", "gateway")):
            assert (await create(anna, name, kind)).startswith(f"sayso_{kind}_")


async def test_rotated_key_stays_beside_its_successor(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await create(anna)
        (old,) = await anna.wiring.api_keys.list_all()
        await anna.send(f"/keys/{old.id}", 422, act="rotate")
        page = await anna.send(f"/keys/{old.id}", 200, act="rotate", overlap="86400")
        assert "stays valid until its overlap ends" in page
        page = await anna.read("/keys")
        assert page.count('<th scope="row">support-bot') == 2
        assert page.count('data-label="Ends"><span class="quiet">never') == 1
        await anna.send("/keys/key_none", 404, act="rotate", overlap="0")


async def test_revoking_a_key_asks_once(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        secret = await create(anna)
        (key,) = await anna.wiring.api_keys.list_all()
        assert "Unfinished runs that it asked for are cancelled." in await anna.send(f"/keys/{key.id}", 200, act="ask")
        bearer = {"Authorization": f"Bearer {secret}"}
        assert await anna.send(f"/keys/{key.id}", act="revoke") == "/keys?done=revoke"
        assert (await anna.client.get("/api/v1/agents", headers=bearer)).status_code == 401
        page = await anna.read("/keys?done=revoke")
        assert "There are no keys." in page
        assert "1 revoked or ended" in page
        await anna.send("/keys/key_none", 404, act="ask")
        await anna.send(f"/keys/{key.id}", 422, act="delete")


async def test_key_of_an_agent_may_have_an_owner(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await add_people(anna.wiring, "ben")
        await anna.send("/keys", 200, name="crm", kind="agent", owner="ben")
        assert "owned by ben" in await anna.read("/keys")
        page = await anna.send("/keys", 422, name="crm", kind="agent", owner="nobody")
        assert "There is no active person named &#39;nobody&#39; to own the key" in page
        assert 'value="nobody"' in page
