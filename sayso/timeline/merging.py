"""Merge external events into timeline entries: joined fragments, calls with results, and a tree of invocations."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable
from sayso.core.records.events import TrailEntry
from sayso.timeline import afk, autogen, parsimony, tool_responses, trpc_agent_go
from sayso.timeline.external_events import Fields, Kind, Part, StoredEvent, describe_unknown


class SourceFormat(StrEnum):
    """The format of the events of a source."""

    SAYSO = "sayso"
    AFK = "afk"
    AUTOGEN = "autogen"
    PARSIMONY = "parsimony"
    TOOL_RESPONSES = "tool_responses"
    TRPC_AGENT_GO = "trpc_agent_go"


class Reader(NamedTuple):
    """How to read and name a format. Reading accepts any JSON object and never fails."""

    label: str
    read: Callable[[JsonObject], tuple[Part, ...]]


SOURCE_FORMATS: dict[SourceFormat, Reader] = {
    SourceFormat.SAYSO: Reader("the agent", partial(afk.read_with, afk.SAYSO_READERS)),
    SourceFormat.AFK: Reader("AFK", afk.read),
    SourceFormat.AUTOGEN: Reader("AutoGen", autogen.read),
    SourceFormat.PARSIMONY: Reader("parsimony-agents", parsimony.read),
    SourceFormat.TOOL_RESPONSES: Reader("the chat", tool_responses.read),
    SourceFormat.TRPC_AGENT_GO: Reader("trpc-agent-go", trpc_agent_go.read),
}


DEEPEST = 8
"""The maximum depth of an entry."""

_FRAGMENTS = (Kind.TEXT, Kind.REASONING)


class Entry(Immutable):
    """A timeline entry: a message with all its fragments, a call with its result, or another event."""

    source: str
    source_format: str
    first_seq: int
    last_seq: int
    at_ms: int
    kind: Kind
    who: str = ""
    text: str = ""
    note: str = ""
    name: str = ""
    call_id: str = ""
    ended: bool = False
    ok: bool | None = None
    data: JsonValue = None
    output: JsonValue = None
    link: str = ""
    invocation: str = ""
    parent: str = ""
    depth: int = 0


@dataclass
class _Draft:
    event: StoredEvent
    part: Part
    at_ms: int
    last_seq: int
    text: list[str] = field(default_factory=list)
    note: str = ""
    data: JsonValue = None
    ok: bool | None = None
    output: JsonValue = None
    link: str = ""
    streamed: bool = False
    settled: bool = False


def build_entries(events: Iterable[StoredEvent]) -> list[Entry]:
    """Return the entries of all sources, those of each source in its order."""
    streams: dict[str, _Stream] = {}
    seen: dict[str, set[str]] = {}
    for event in sorted(events, key=lambda event: (event.source, event.seq)):
        shared = seen.setdefault(event.source_format, set())
        streams.setdefault(event.source, _Stream(shared)).add(event)
    return [entry for stream in streams.values() for entry in stream.finish()]


def merge(trail: Sequence[TrailEntry], entries: Sequence[Entry]) -> list[TrailEntry | Entry]:
    """Sort both by time. At the same time, trail entries come first."""
    both: list[TrailEntry | Entry] = [*trail, *entries]
    return sorted(both, key=lambda entry: entry.at_ms)


class _Stream:
    """The events of one source, in order. `seen` is shared by all sources of its format."""

    def __init__(self, seen: set[str]) -> None:
        self._drafts: list[_Draft] = []
        self._open: dict[tuple[str, ...], _Draft] = {}
        self._fragments: dict[tuple[str, ...], _Draft] = {}
        self._calls: dict[str, _Draft] = {}
        self._parents: dict[str, str] = {}
        self._seen = seen
        self._at_ms = 0

    def add(self, event: StoredEvent) -> None:
        parts = SOURCE_FORMATS[SourceFormat(event.source_format)].read(event.event)
        for part in parts or (describe_unknown(Fields(event.event), ""),):
            if part.once and part.once in self._seen:
                continue
            self._seen.add(part.once)
            if part.parent and part.invocation:
                self._parents.setdefault(part.invocation, part.parent)
            if part.kind in _FRAGMENTS:
                self._add_text(event, part)
                continue
            self._close(part)
            if part.kind is Kind.CALL:
                draft = self._calls.get(part.call_id) if part.call_id else None
                if draft is None or draft.settled:
                    self._calls[part.call_id or f"{event.seq}/{len(self._drafts)}"] = self._add_draft(event, part)
                    continue
                draft.note = draft.note or part.note
                draft.data = draft.data if draft.data is not None else part.data
                draft.last_seq = event.seq
            elif part.kind is Kind.RESULT:
                self._add_result(event, part)
            else:
                self._add_draft(event, part)

    def _add_text(self, event: StoredEvent, part: Part) -> None:
        """Append a fragment to its message, or replace the fragments of a message with the whole."""
        key = (part.kind, part.invocation, part.who)
        if part.whole:
            draft = self._fragments.pop(key, None)
            self._close(part)
            if draft is not None and part.text.strip().startswith("".join(draft.text).strip()):
                draft.text, draft.last_seq = [part.text], event.seq
                return
            self._add_draft(event, part)
            return
        draft = self._open.get((*key, part.key))
        if draft is None:
            self._close(part)
            draft = self._open[(*key, part.key)] = self._add_draft(event, part)
            self._fragments[key] = draft
        else:
            draft.text.append(part.text)
            draft.last_seq = event.seq

    def _close(self, part: Part) -> None:
        """End the messages of the invocation whose fragments have no key."""
        for key in [key for key in self._open if not key[3] and key[1] == part.invocation]:
            if key[:3] != (part.kind, part.invocation, part.who) or part.whole:
                del self._open[key]

    def _add_result(self, event: StoredEvent, part: Part) -> None:
        # Without ids it is the oldest call of that tool without a result.
        if part.call_id:
            draft = self._calls.get(part.call_id)
        else:
            unnamed = (draft for draft in self._calls.values() if not draft.settled and not draft.part.call_id)
            draft = next((draft for draft in unnamed if not part.name or draft.part.name == part.name), None)
        if draft is None:
            draft = self._add_draft(event, part)
            draft.data = None
            if part.call_id:
                self._calls[part.call_id] = draft
        draft.last_seq = event.seq
        draft.note = "\n".join(dict.fromkeys(note for note in (draft.note, part.note) if note))
        if not part.whole:
            before = draft.output if draft.streamed and isinstance(draft.output, str) else ""
            draft.output, draft.streamed = before + str(part.data or ""), True
            return
        draft.settled = True
        draft.ok = part.ok if draft.ok is None else draft.ok
        draft.text = [part.text] if part.text else draft.text
        draft.output = part.data if part.data is not None else draft.output
        draft.link = part.link or draft.link

    def _add_draft(self, event: StoredEvent, part: Part) -> _Draft:
        stated_ms = event.said_at_ms if event.said_at_ms is not None else part.at_ms
        # A stated time is neither in the future nor before that of the entry above.
        self._at_ms = max(self._at_ms, min(stated_ms if stated_ms is not None else event.at_ms, event.at_ms))
        draft = _Draft(event, part, self._at_ms, event.seq, [part.text], part.note, part.data, part.ok)
        self._drafts.append(draft)
        return draft

    def finish(self) -> Iterator[Entry]:
        for draft in self._drafts:
            part = draft.part
            yield Entry(
                source=draft.event.source,
                source_format=draft.event.source_format,
                first_seq=draft.event.seq,
                last_seq=max(draft.last_seq, draft.event.seq),
                at_ms=draft.at_ms,
                kind=part.kind,
                who=part.who,
                text="".join(draft.text),
                note=draft.note,
                name=part.name,
                call_id=part.call_id,
                ended=draft.settled,
                ok=draft.ok,
                data=draft.data,
                output=draft.output,
                link=draft.link,
                invocation=part.invocation,
                parent=self._parents.get(part.invocation, ""),
                depth=self._depth(part.invocation),
            )

    def _depth(self, invocation: str) -> int:
        seen = {invocation}
        while (parent := self._parents.get(invocation, "")) and parent not in seen and len(seen) <= DEEPEST:
            seen.add(parent)
            invocation = parent
        return min(len(seen) - 1, DEEPEST)
