"""What Sayso computed for a rule is on the item and in the trail; rules are checked with their lists."""

from typing import Any

from sayso.client import administration
from tests.service.worlds import World

RULES = """version: 1
default: allow
rules:
  - id: deletions
    tool: run
    when: '"rm" in shell(args.command).programs && !has_secret(args.note)'
    action: request_approval
    terms: {secrets: [note]}
"""
LISTED = "version: 1\ndefault: allow\nlists: {out: {file: out.txt}}\nrules: [{id: a, tool: {in: out}, action: deny}]\n"


async def suspend(world: World, command: str) -> dict[str, Any]:
    world.wiring.settings.policy.write_text(RULES)
    call = {"tool": "run", "args": {"command": command, "note": "hush"}, "definition": {"description": "Run."}}
    async with world.client("demo") as client:
        answer = await client.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})
        found: dict[str, Any] = answer.json()
        trail = (await client.get(f"/api/v1/runs/{found['run']['id']}/events")).json()
    judged = next(one for one in trail["events"] if one["type"] == "policy_decision")
    return {"item": found["items"][0], "event": judged["data"]}


async def test_item_and_trail_have_what_the_rule_read(world: World) -> None:
    found = await suspend(world, "sudo rm x")
    computed = {"shell(args.command).programs": ["sudo", "rm"], "has_secret(args.note)": False}
    assert found["item"]["computed"] == computed
    assert found["event"]["computed"] == computed


async def test_item_without_computed_values_has_none(world: World) -> None:
    found = await suspend(world, "$X y")
    assert (found["item"]["computed"], "computed" in found["event"]) == ({"has_secret(args.note)": False}, True)
    assert "the name of a program is computed by the shell" in found["event"]["error"]


async def test_rules_are_checked_with_the_files_of_their_lists(world: World) -> None:
    async with world.client("anna") as client:
        for lists, faults in ((None, 1), ({"out.txt": ""}, 1), ({"out.txt": "send\n"}, 0)):
            request = administration.check_rules(LISTED, "policy.yaml", lists)
            found = (await client.post(request.path, json=request.body)).json()
            assert (len(found["faults"]), found["ok"]) == (faults, not faults)
