"""Fold what sources told into entries: fragments into messages, results into their calls, invocations into a tree."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from sayso.formats.external_events import Fields, Kept, Kind, Piece, describe_unknown
from sayso.records.base import Immutable
from sayso.records.events import TrailEntry
from sayso.timeline.sources import SOURCE_FORMATS, SourceFormat

DEEPEST = 8
"""Invocations further down are shown at this depth."""

_FRAGMENTS = (Kind.TEXT, Kind.REASONING)


class Entry(Immutable):
    """One thing a source told: a message with all its fragments, or a call with what came of it, or anything else."""

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
    invocation: str = ""
    parent: str = ""
    depth: int = 0


@dataclass
class _Draft:
    """An entry that may still grow."""

    kept: Kept
    piece: Piece
    at_ms: int
    last_seq: int
    text: list[str] = field(default_factory=list)
    note: str = ""
    data: JsonValue = None
    ok: bool | None = None
    output: JsonValue = None
    grown: bool = False
    settled: bool = False


def fold(kept: Iterable[Kept]) -> list[Entry]:
    """Return the entries of all sources, those of each in its own order."""
    streams: dict[str, _Stream] = {}
    once: dict[str, set[str]] = {}
    for one in sorted(kept, key=lambda event: (event.source, event.seq)):
        told = once.setdefault(one.source_format, set())
        streams.setdefault(one.source, _Stream(told)).add(one)
    return [entry for stream in streams.values() for entry in stream.finish()]


def merge(trail: Sequence[TrailEntry], entries: Sequence[Entry]) -> list[TrailEntry | Entry]:
    """Return both as one, by their moments; at the same moment our own trail comes first."""
    both: list[TrailEntry | Entry] = [*trail, *entries]
    return sorted(both, key=lambda one: one.at_ms)


class _Stream:
    """What one source told so far, in order; `told` is what all sources of its dialect told once."""

    def __init__(self, told: set[str]) -> None:
        self._drafts: list[_Draft] = []
        self._open: dict[tuple[str, ...], _Draft] = {}
        self._fragments: dict[tuple[str, ...], _Draft] = {}
        self._calls: dict[str, _Draft] = {}
        self._parents: dict[str, str] = {}
        self._told = told
        self._at_ms = 0

    def add(self, one: Kept) -> None:
        """Read one event and add what it shows."""
        pieces = SOURCE_FORMATS[SourceFormat(one.source_format)].read(one.event)
        for piece in pieces or (describe_unknown(Fields(one.event), ""),):
            if piece.once and piece.once in self._told:
                continue
            self._told.add(piece.once)
            if piece.parent and piece.invocation:
                self._parents.setdefault(piece.invocation, piece.parent)
            self._place(one, piece)

    def _place(self, one: Kept, piece: Piece) -> None:
        if piece.kind in _FRAGMENTS:
            self._say(one, piece)
            return
        self._close(piece)
        if piece.kind is Kind.CALL:
            self._call(one, piece)
        elif piece.kind is Kind.RESULT:
            self._result(one, piece)
        else:
            self._draft(one, piece)

    def _say(self, one: Kept, piece: Piece) -> None:
        """Add a fragment to its message, or put a whole message in the place of the fragments it consists of."""
        where = (piece.kind, piece.invocation, piece.who)
        if piece.whole:
            draft = self._fragments.pop(where, None)
            self._close(piece)
            if draft is not None and piece.text.strip().startswith("".join(draft.text).strip()):
                draft.text, draft.last_seq = [piece.text], one.seq
                return
            self._draft(one, piece)
            return
        draft = self._open.get((*where, piece.key))
        if draft is None:
            self._close(piece)
            draft = self._open[(*where, piece.key)] = self._draft(one, piece)
            self._fragments[where] = draft
        else:
            draft.text.append(piece.text)
            draft.last_seq = one.seq

    def _close(self, piece: Piece) -> None:
        """Anything else of the same invocation ends a message whose fragments do not name it."""
        for place in [place for place in self._open if not place[3] and place[1] == piece.invocation]:
            if place[:3] != (piece.kind, piece.invocation, piece.who) or piece.whole:
                del self._open[place]

    def _call(self, one: Kept, piece: Piece) -> None:
        draft = self._calls.get(piece.call_id) if piece.call_id else None
        if draft is None or draft.settled:
            self._calls[piece.call_id or f"{one.seq}/{len(self._drafts)}"] = self._draft(one, piece)
            return
        draft.note = draft.note or piece.note
        draft.data = draft.data if draft.data is not None else piece.data
        draft.last_seq = one.seq

    def _result(self, one: Kept, piece: Piece) -> None:
        draft = self._find_call(piece)
        if draft is None:
            draft = self._draft(one, piece)
            draft.data = None
            if piece.call_id:
                self._calls[piece.call_id] = draft
        draft.last_seq = one.seq
        draft.note = "\n".join(dict.fromkeys(word for word in (draft.note, piece.note) if word))
        if not piece.whole:
            before = draft.output if draft.grown and isinstance(draft.output, str) else ""
            draft.output, draft.grown = before + str(piece.data or ""), True
            return
        draft.settled = True
        draft.ok = piece.ok if draft.ok is None else draft.ok
        draft.text = [piece.text] if piece.text else draft.text
        draft.output = piece.data if piece.data is not None else draft.output

    def _find_call(self, piece: Piece) -> _Draft | None:
        """The call of that id; without ids the oldest one still without a result, of the same tool where it is told."""
        if piece.call_id:
            return self._calls.get(piece.call_id)
        for draft in self._calls.values():
            fits = not piece.name or draft.piece.name == piece.name
            if not draft.settled and not draft.piece.call_id and fits:
                return draft
        return None

    def _draft(self, one: Kept, piece: Piece) -> _Draft:
        said_ms = one.said_at_ms if one.said_at_ms is not None else piece.at_ms
        # Nobody tells of what is still to come, nor out of their own order.
        self._at_ms = max(self._at_ms, min(said_ms if said_ms is not None else one.at_ms, one.at_ms))
        draft = _Draft(one, piece, self._at_ms, one.seq, [piece.text], piece.note, piece.data, piece.ok)
        self._drafts.append(draft)
        return draft

    def finish(self) -> Iterator[Entry]:
        """Return the entries, in order."""
        for draft in self._drafts:
            piece = draft.piece
            yield Entry(
                source=draft.kept.source,
                source_format=draft.kept.source_format,
                first_seq=draft.kept.seq,
                last_seq=max(draft.last_seq, draft.kept.seq),
                at_ms=draft.at_ms,
                kind=piece.kind,
                who=piece.who,
                text="".join(draft.text),
                note=draft.note,
                name=piece.name,
                call_id=piece.call_id,
                ended=draft.settled,
                ok=draft.ok,
                data=draft.data,
                output=draft.output,
                invocation=piece.invocation,
                parent=self._parents.get(piece.invocation, ""),
                depth=self._depth(piece.invocation),
            )

    def _depth(self, invocation: str) -> int:
        seen = {invocation}
        while (above := self._parents.get(invocation, "")) and above not in seen and len(seen) <= DEEPEST:
            seen.add(above)
            invocation = above
        return min(len(seen) - 1, DEEPEST)
