"""Events of trpc-agent-go v1.11.2, recorded from the server in `tests/frameworks/trpc_agent_go`.

Updates of channels and states are left out, and all but the first of a graph's steps.
"""

import json
import re
from pathlib import Path
from typing import Any

_RECORDED = Path(__file__).with_name("trpc_recorded.jsonl")
_TIMES = re.compile(r"[\d.e+-]+ m?s\b")

SHOWN = {
    "payments": [
        "0 text review: Asking about call_0_0.",
        "0 step review: review: review.asked",
        "0 text review: Money leaves. / Tags: audit",
        "0 wait graph-pregel: Waits at review",
        "0 end payments: The request ended",
        "0 text review: Asking about call_0_0.",
        "0 step review: review: review.asked",
        "0 text review: Money leaves. / Tags: audit",
        "1 call tools: send_money",
        "1 reasoning answer: All calls have ended.",
        '1 text answer: done: "sent 2 to ann"',
        "0 step graph-executor: Graph ended",
        "0 end payments: The request ended",
    ],
    "handoff": [
        "0 call helper: transfer_to_agent",
        "0 step helper: Handed off / Transferring control to agent: clerk",
        "1 step clerk: Handed off / file it",
        "1 reasoning clerk: All calls have ended.",
        "1 text clerk: done: file it",
        "0 end helper: The request ended",
    ],
    "tools": [
        "0 call helper: send_money / The agent ends with this result",
        "0 call helper: book / Continues in the background\nThe agent ends with this result",
        "0 call helper: say / The agent ends with this result",
        "0 end helper: The request ended",
    ],
    "code": [
        "0 reasoning helper: All calls have ended.",
        "0 text helper: ```python\nhi\n```",
        "0 step helper: Wrote code / ```python\nhi\n```",
        "0 step helper: Ran code / Code execution result:\nhi",
        "0 end helper: The request ended",
    ],
}
"""What the timeline says of each run besides its quiet entries, as in `describe`."""


def read_recorded(run: str) -> list[dict[str, Any]]:
    """Return the events of a recorded run."""
    rows = [json.loads(line) for line in _RECORDED.read_text(encoding="utf-8").splitlines()]
    return [row["event"] for row in rows if row["run"] == run]


def describe(entry: Any) -> str:
    """Return a line for an entry of the timeline, without the times that differ from run to run."""
    said = " / ".join(part.strip() for part in (entry.name, entry.text, entry.note) if part.strip())
    return f"{entry.depth} {entry.kind} {entry.who}: {_TIMES.sub('…', said)}"
