"""Requests of people and agents, and what follows the advice of a refusal among them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from httpx import Response

from tests.service.worlds import World

PASSWORD = "granite lantern over the quiet estuary"
POLICY = """
version: 1
default: request_approval
rules:
  - {id: payouts, tool: payout, action: request_approval, grants: {longest: 7d, people: 2},
     terms: {reviewers: [anna, ben]}}
  - id: large-wires
    priority: 200
    tool: wire
    when: args.amount > 100
    action: request_approval
    grants: {longest: 7d}
    terms: {reviewers: [anna, root]}
  - {id: free, tool: free, action: allow}
  - {id: final, tool: final, action: request_approval, terms: {rounds: 0}}
  - {id: codes, tool: enter, action: request_user_input, ask: {target_arg: code}}
  - {id: wires, tool: wire, action: request_approval, grants: {longest: 7d}, mandates: {longest: 8h}}
"""
NOTHING: Mapping[str, Any] = MappingProxyType({})
Kept = dict[str, str]
"""Values of earlier answers by name, for `{name}` in later requests."""


class Step(NamedTuple):
    """A request, as somebody sends it; `keep` names values of its answer by their place in it.

    `who` has a token of the world, or `@name` sends a kept one. It is sent `times`, with `{n}` as the number from 10.
    """

    who: str
    method: str
    path: str
    body: Any = None
    keep: Mapping[str, str] = NOTHING
    headers: Mapping[str, str] = NOTHING
    times: int = 1


class Case(NamedTuple):
    """An advice, what precedes the refused request, that request, and the requests that follow the advice.

    `rest` is what the code computes after the literal advice, and `settings` are those of the service.
    """

    module: str
    advice: str
    refused: Step
    followed: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    rest: str = ""
    settings: Mapping[str, Any] = NOTHING


def see(path: str, who: str = "anna") -> tuple[Step, ...]:
    return (Step(who, "GET", path),)


def sign_in(name: str, password: str = PASSWORD) -> Step:
    return Step("", "POST", "sessions", {"name": name, "password": password}, {name: "token"})


def call(tool: str = "pay", **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args, "definition": {}}


def ask(*calls: dict[str, Any], who: str = "demo", **fields: Any) -> Step:
    """Ask about calls; keeps the suspension, its run and the digest of its first item."""
    kept = {"suspension": "id", "run": "run.id", "digest": "items.0.digest"}
    return Step(who, "POST", "suspensions", {"mode": "poll", "calls": list(calls) or [call()], **fields}, kept)


def decide(who: str, action: str = "approve", **fields: Any) -> Step:
    body = {"action": action, "digest": "{digest}", **fields}
    return Step(who, "POST", "suspensions/{suspension}/items/i1/decision", body)


def read_digest() -> Step:
    return Step("anna", "GET", "suspensions/{suspension}", keep={"digest": "items.0.digest"})


def fill(value: Any, kept: Mapping[str, str]) -> Any:
    """Return the value with all kept values in their places."""
    if isinstance(value, str):
        for name, text in kept.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {name: fill(one, kept) for name, one in value.items()}
    return [fill(one, kept) for one in value] if isinstance(value, list) else value


def find(answer: Any, place: str) -> str:
    for name in place.split("."):
        answer = answer[int(name)] if isinstance(answer, list) else answer[name]
    return str(answer)


async def send(world: World, step: Step, kept: Kept | None = None) -> Response:
    """Send a step, and keep what it names; return the last answer, or the first that is not a success."""
    kept = {} if kept is None else kept
    answer = Response(400, text="no request was sent")
    tokens = {f"@{name}": token for name, token in kept.items()} | world.tokens
    sent = {"Authorization": f"Bearer {tokens[step.who]}"} if step.who else {}
    async with world.client() as client:
        for number in range(step.times):
            values = {**kept, "n": str(number + 10)}
            path = fill(step.path, values)
            answer = await client.request(
                step.method,
                path if path.startswith("/") else f"/api/v1/{path}",
                json=None if isinstance(step.body, bytes) else fill(step.body, values),
                content=step.body if isinstance(step.body, bytes) else None,
                headers={**sent, **fill(dict(step.headers), values)},
            )
            if not answer.is_success:
                return answer
            kept |= {name: find(answer.json(), place) for name, place in step.keep.items()}
    return answer


def read_detail(refused: Response) -> str:
    """Return what a refusal says, also one of the AAP."""
    answer = refused.json()
    return str(answer["detail"] if "detail" in answer else answer["error"]["message"])
