"""Who is asked when, over the API."""

from tests.service.worlds import World


async def test_who_shows_people_and_the_end(world: World) -> None:
    body = {"rule": "who-gets-it", "at": "2036-12-24T18:00:00Z", "call": {"tool": "pay", "owner": "demo"}}
    async with world.client("anna") as anna:
        found = (await anna.post("/api/v1/who", json=body)).json()
        assert [(one["person"], one["reason"]) for one in found["asked"]] == [
            ("anna", "The rule names no channels."),
            ("root", "The rule names no channels."),
        ]
        assert (found["deadline_at"], found["end"]) == ("2036-12-24T18:05:00.000Z", "It is denied.")
        assert (await anna.post("/api/v1/who", json={**body, "rule": "none"})).status_code == 404
    async with world.client("demo") as demo:
        assert (await demo.post("/api/v1/who", json=body)).status_code == 403
