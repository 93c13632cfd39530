"""The last denial of the same call, as people and agents read it over the API."""

from typing import Any

from tests.service.worlds import World


async def ask(client: Any) -> dict[str, Any]:
    call = {"tool": "payout", "args": {"customer": "D-1"}, "definition": {}}
    body = {"mode": "poll", "calls": [call], "thread_id": "t1"}
    return dict((await client.post("/api/v1/suspensions", json=body)).json())


async def test_people_read_the_last_denial_and_agents_do_not(world: World) -> None:
    async with world.client("demo") as demo, world.client("root") as root:
        found = await ask(demo)
        place = f"/api/v1/suspensions/{found['id']}/items/i1/decision"
        body = {"action": "deny", "digest": found["items"][0]["digest"], "message": "never for D-1"}
        assert (await root.post(place, json=body)).status_code == 200
        again = await ask(demo)
        denied = (await root.get(f"/api/v1/suspensions/{again['id']}")).json()["items"][0]["denied_before"]
        assert (denied["by"], denied["message"], denied["thread_id"]) == ("root", "never for D-1", "t1")
        assert denied["suspension_id"] == found["id"]
        assert again["items"][0]["denied_before"] is None
        assert (await demo.get(f"/api/v1/suspensions/{again['id']}")).json()["items"][0]["denied_before"] is None
