"""An agent that deletes rows of a file, whose tool can say before which rows these are."""

from sayso.core.canonical_json import JsonObject
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import tool
from service.core.settings import load

ROWS = "rows.txt"


def find_rows(args: JsonObject) -> list[JsonObject]:
    """Return the rows that would be deleted."""
    rows = (load().home / ROWS).read_text(encoding="utf-8").splitlines()
    return [{"row": row} for row in rows if str(args["word"]) in row]


@tool(preview=find_rows)
def delete_rows(word: str) -> int:
    """Delete the rows with this word."""
    path = load().home / ROWS
    rows = path.read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if word not in row]
    path.write_text("\n".join(kept), encoding="utf-8")
    return len(rows) - len(kept)


_CALL = RequestedCall(call_id="call_0", name="delete_rows", args_json='{"word": "old"}')
wiper = Agent(
    name="wiper",
    instructions="Delete.",
    tools=(delete_rows,),
    model=ScriptedModel([ModelTurn(calls=(_CALL,)), ModelTurn(text="Done.")]),
)
