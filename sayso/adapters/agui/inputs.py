"""Inputs of AG-UI runs: what a client may send to an agent through the proxy."""

from sayso.adapters.agui import streams
from sayso.adapters.agui.interrupts import MAX_INTERRUPTS
from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput

FOREIGN = "The run does not wait for these answers. Resume its thread with the ids of all its last interrupts at once."
_BESIDE = "Only resume may answer what an agent asks. Remove forwardedProps.{name} from the input."
_OTHER_WAYS = ("command", "resume", "resumemap", "nodename")
_MISNAMED = "The input has a member {name}. AG-UI writes its names in camelCase."


def check_input(run_input: JsonObject) -> None:
    """Raise `InvalidInput` for an input without its ids, or one that an agent may read otherwise than the proxy."""
    for name in ("threadId", "runId"):
        if not isinstance(run_input.get(name), str) or not run_input[name]:
            raise InvalidInput(f"The input has no {name}. Send a RunAgentInput of AG-UI 1.0.")
    if run_input.get("resume") and not list_entries(run_input):
        raise InvalidInput(FOREIGN)
    parts = [run_input, *streams.list_objects(run_input.get("messages"))]
    for name in (name for part in parts for name in part if "_" in name):
        raise InvalidInput(_MISNAMED.format(name=name[:80]))  # libraries of agents read these, too
    props = run_input.get("forwardedProps")
    for name in props if isinstance(props, dict) else ():
        if name.replace("_", "").lower() in _OTHER_WAYS:
            raise InvalidInput(_BESIDE.format(name=name))


def list_entries(run_input: JsonObject) -> list[JsonObject]:
    """Return the entries of an input's `resume`; none if there are too many."""
    entries = streams.list_objects(run_input.get("resume"))
    return entries if len(entries) <= MAX_INTERRUPTS else []


def copy_ids(run_input: JsonObject) -> JsonObject:
    """Return the ids that the events of a run repeat."""
    return {"threadId": run_input["threadId"], "runId": run_input["runId"]}
