"""A LangGraph bot that interrupts with Agent Inbox's HumanInterrupt before each call."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from sayso.adapters.langgraph import gate, sqlite
from tests.frameworks.bots.effects import parse_script, record_effect, wait_before_turn
from tests.frameworks.bots.langgraph import THREADS, TOOLS

CONFIG = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}


class State(TypedDict):
    script: str
    turn: int
    results: Annotated[list[str], operator.add]
    text: str


def plan(state: State) -> dict[str, Any]:
    wait_before_turn(state["turn"])
    return {"turn": state["turn"] + 1, "text": "results: " + " | ".join(state["results"])}


def spread(state: State) -> Any:
    turns = parse_script(state["script"])
    if state["turn"] > len(turns):
        return END
    return [Send("act", {"call": call}) for call in turns[state["turn"] - 1]]


def act(state: Any) -> dict[str, Any]:
    call = state["call"]
    request = {"action": call["tool"], "args": call["args"]}
    (answer,) = interrupt([{"action_request": request, "config": CONFIG, "description": None}])
    if answer["type"] == "accept":
        return {"results": [record_effect(call["tool"], **call["args"])]}
    if answer["type"] == "edit":
        return {"results": [record_effect(answer["args"]["action"], **answer["args"]["args"])]}
    return {"results": [str(answer["args"])]}


def build(*, checkpointer: Any, middleware: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("act", act)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", spread)
    graph.add_edge("act", "plan")
    return graph.compile(checkpointer=checkpointer)


bot = gate(
    build,
    name="bot",
    tools=TOOLS,
    checkpointer=sqlite(THREADS),
    write_input=lambda text: {"script": text, "turn": 0, "results": [], "text": ""},
    idempotent={"look_up"},
)
