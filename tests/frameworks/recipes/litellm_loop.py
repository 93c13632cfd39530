"""A tool loop of LiteLLM whose calls wait at the desk: it ends, and is started again after the decisions.

python litellm_loop.py conversation.json "Pay Ann what she is owed."
"""

import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
import litellm

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
SEND_MONEY = {
    "description": "Send money to somebody.",
    "parameters": {"type": "object", "properties": {"to": TEXT, "amount": WHOLE}, "required": ["to", "amount"]},
}


def send_money(to: str, amount: int) -> str:
    """Send money: put your own code here."""
    with Path("sent.txt").open("a", encoding="utf-8") as file:
        file.write(f"{to} {amount}\n")
    return f"sent {amount} to {to}"


TOOLS = {"send_money": (send_money, SEND_MONEY)}


def run_call(desk: httpx.Client, key: str, name: str, args: dict[str, Any]) -> str | None:
    """Return what the model reads of a call, or None while it waits for a person."""
    if name not in TOOLS:
        return f"There is no tool {name}."
    function, definition = TOOLS[name]
    asked = {"mode": "poll", "calls": [{"tool": name, "args": args, "definition": definition}]}
    suspension = desk.post("suspensions", json=asked, headers={"Idempotency-Key": key}).raise_for_status().json()
    if suspension["status"] == "pending":
        return None
    item = suspension["items"][0]
    outcome, report = item["outcome"] or {}, (item["permit"] or {}).get("report")
    if report is not None:
        return str(report["output"])
    if outcome.get("verdict") not in ("approved", "answered"):
        return f"{name} did not run: {outcome.get('message') or suspension['status']}"
    place = f"suspensions/{suspension['id']}/items/{item['item_id']}"
    attempt = {"Idempotency-Key": str(uuid.uuid4())}  # the permit is for this process alone
    permit = desk.post(f"{place}/redeem", headers=attempt)
    if permit.status_code == 409:
        return f"{name} was started before and may have run. Do not call it again."
    result = function(**permit.raise_for_status().json()["args"])
    desk.post(f"{place}/outcome", json={"success": True, "output": result}, headers=attempt).raise_for_status()
    return result


def count_calls(messages: list[Any]) -> int:
    """Return how many calls the model has made."""
    return sum(len(message.get("tool_calls") or ()) for message in messages)


def main(file: Path, prompt: str) -> None:
    """Continue the conversation in the file until the model ends it, or calls wait."""
    messages: list[Any] = json.loads(file.read_text()) if file.exists() else [{"role": "user", "content": prompt}]
    tools = [{"type": "function", "function": {"name": name, **tool}} for name, (_, tool) in TOOLS.items()]
    headers = {"Authorization": f"Bearer {os.environ['SAYSO_KEY']}"}
    with httpx.Client(base_url=f"{os.environ['SAYSO_URL']}/api/v1/", headers=headers) as desk:
        while True:
            turn = next(message for message in reversed(messages) if message["role"] != "tool")
            calls = turn.get("tool_calls") or ()
            for call in calls:
                if any(message.get("tool_call_id") == call["id"] for message in messages):
                    continue
                name, args = call["function"]["name"], json.loads(call["function"]["arguments"])
                result = run_call(desk, f"{file.stem}-{call['id']}", name, args)
                if result is not None:
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
                    file.write_text(json.dumps(messages))
            if sum("tool_call_id" in message for message in messages) < count_calls(messages):
                return print("Calls wait for a person. Start this again after the decision.")
            if turn["role"] == "assistant" and not calls:
                return print(turn["content"])
            answer = litellm.completion(model=os.environ["MODEL"], messages=messages, tools=tools)
            messages.append(answer.choices[0].message.model_dump(exclude_none=True))
            file.write_text(json.dumps(messages))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
