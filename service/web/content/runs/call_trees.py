"""The calls of a run as a tree: each turn of the model with the calls that it requested."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.rendering.views import shorten
from sayso.core.text.language import _
from sayso.core.text.redaction import Redacted
from sayso.core.transitions.states import find_item_state
from service.web.content.cards import item_href
from service.web.content.facts import Facts

_MAX_CHARS = 200


@dataclass(frozen=True)
class TreeCall:
    """One call; a call that nobody was asked about has no `href`. `subagent` is empty for the agent itself."""

    tool: str
    state: str
    href: str = ""
    subagent: str = ""


@dataclass
class Turn:
    """One turn of the model: its text, which is a claim, and its calls."""

    text: str = ""
    calls: list[TreeCall] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    """Where each call that has no item yet stands in `calls`, by its index."""

    def put(self, index: int, call: TreeCall) -> None:
        """Add a call, or replace the one with this index, whose state is now known."""
        place = self.places.pop(index, len(self.calls))
        self.calls[place : place + 1] = [call]
        if not call.href:
            self.places[index] = place


def list_turns(trail: Iterable[TrailEntry], records: Sequence[SuspensionRecord]) -> list[Turn]:
    """Return the turns in order. Calls that were suspended have the state of their item."""
    by_id = {record.id: record for record in records}
    turns: list[Turn] = []
    begun = False  # a turn, which the next suspension belongs to
    for entry in trail:
        facts = Facts(entry.data)
        if entry.type == EventType.LLM_COMPLETED:
            turns.append(Turn(shorten(facts.text("text"), _MAX_CHARS)))
            begun = True
        elif entry.type == EventType.POLICY_DECISION and isinstance(facts.value("index"), int):
            if not begun:
                turns.append(Turn())
                begun = True
            state = "denied" if facts.text("action") == "deny" else "running"
            turns[-1].put(facts.number("index"), TreeCall(facts.text("tool_name", _("A call")), state))
        elif entry.type == EventType.TOOL_COMPLETED and turns:
            _complete(turns[-1], facts)
        elif entry.type == EventType.RUN_PAUSED:
            if not begun:
                turns.append(Turn())
            _suspend(turns[-1], by_id.get(facts.object("payload").text("suspension_id")), facts.object("payload"))
            begun = False
    return [turn for turn in turns if turn.text or turn.calls]


def mask_turns(turns: Iterable[Turn], secrets: Redacted) -> list[Turn]:
    """Return the turns with secrets masked in the model's text."""
    return [replace(turn, text=secrets.scrub(turn.text)) for turn in turns] if secrets.masked else [*turns]


def _complete(turn: Turn, facts: Facts) -> None:
    place = turn.places.get(facts.number("index"))
    if place is not None and turn.calls[place].tool == facts.text("tool_name", _("A call")):
        denied = turn.calls[place].state == "denied"
        state = "denied" if denied else "completed" if facts.flag("success") else "failed"
        turn.put(facts.number("index"), TreeCall(turn.calls[place].tool, state))


def _suspend(turn: Turn, record: SuspensionRecord | None, payload: Facts) -> None:
    """Put the items of the suspension in place of their calls; a record that is not read is named by the trail."""
    if record is None:
        turn.calls += [TreeCall(row.text("tool_name", _("A call")), "suspended") for row in payload.objects("items")]
        return
    for item in record.items:
        state, subagent = find_item_state(record, item), item.subagent or ""
        turn.put(item.index, TreeCall(item.tool.name, state, item_href(record, item), subagent))
