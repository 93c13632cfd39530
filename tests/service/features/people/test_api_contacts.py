"""Contacts over HTTP: people manage their own, admins unlink those of others."""

from tests.service.worlds import World

OWN = "/api/v1/account/contacts"


async def test_person_creates_a_code_and_unlinks_the_contact(world: World) -> None:
    async with world.client("anna") as anna:
        made = await anna.post(f"{OWN}/codes", json={"channel": "telegram"})
        assert made.status_code == 201
        assert made.json()["expires_at"].endswith("Z")
        await world.wiring.contacts.redeem_code("telegram", made.json()["code"], "4711", "@anna")
        (contact,) = (await anna.get(OWN)).json()["contacts"]
        assert (contact["channel"], contact["address"], contact["label"]) == ("telegram", "4711", "@anna")
        assert (await anna.delete(f"{OWN}/{contact['id']}")).status_code == 204
        assert (await anna.delete(f"{OWN}/{contact['id']}")).status_code == 404
        assert (await anna.post(f"{OWN}/codes", json={"channel": "Not a name"})).status_code == 422


async def test_admin_lists_and_unlinks_contacts_of_others(world: World) -> None:
    code = (await world.wiring.contacts.create_code("anna", "slack")).code
    contact = await world.wiring.contacts.redeem_code("slack", code, "U1")
    async with world.client("root") as root, world.client("anna") as anna:
        path = "/api/v1/reviewers/anna/contacts"
        assert [one["id"] for one in (await root.get(path)).json()["contacts"]] == [contact.id]
        assert (await anna.get(path)).status_code == 403
        assert (await root.delete(f"{path}/{contact.id}")).status_code == 204
        assert (await root.get(path)).json() == {"contacts": []}


async def test_keys_and_agents_have_no_contacts(world: World) -> None:
    _, world.tokens["key"] = await world.wiring.api_keys.create("anna", kind="reviewer")
    for who in ("key", "demo"):
        async with world.client(who) as client:
            assert (await client.post(f"{OWN}/codes", json={"channel": "slack"})).status_code == 403
            assert (await client.get(OWN)).status_code == 403
