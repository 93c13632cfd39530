"""What features add to the pages of the edge: sign-in, inbox, an item and its decision, a run, and the live stream."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from fastapi import Request

from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.deadlines import Sentence
from sayso.core.text.redaction import Redacted
from service.core.auth.credentials import Principal
from service.core.wiring import Wiring
from service.edge.web.content.details import ItemView
from service.edge.web.content.timeline import Line
from service.edge.web.sessions import Post, Visitor


class ItemPage(NamedTuple):
    """An item whose page is made; `view` and `lines` have its secrets masked, and `item` does not."""

    wiring: Wiring
    person: str
    item: Item
    view: ItemView
    lines: Sequence[Line]
    post: Post
    now_ms: int


class RunPage(NamedTuple):
    """A run whose page is made for `by`, with its readable records and the lines of its timeline."""

    wiring: Wiring
    run_id: str
    records: Sequence[SuspensionRecord]
    secrets: Redacted
    lines: list[Line]
    by: Actor


class ItemVisit(NamedTuple):
    """A person at an item's page, and the form that they sent; empty for none."""

    request: Request
    visitor: Visitor
    suspension_id: str
    item_id: str
    post: Post = MappingProxyType({})

    @property
    def by(self) -> Actor:
        return self.visitor.principal.reviewer("web")


class ItemForm(NamedTuple):
    """A form beside the decision. It sends its name as `part`; a refused one is shown again with its fields."""

    name: str
    fields: tuple[str, ...]
    send: Callable[[ItemVisit], Awaitable[None]]


class DecisionForm(NamedTuple):
    """A form with a decision on an item."""

    wiring: Wiring
    suspension_id: str
    item: Item
    decision: DecisionRequest
    by: Principal
    post: Post


class DecisionPart(NamedTuple):
    """A part of the decision form: whether the form asks what the part means, the answer, and the whole decision."""

    asks: Callable[[Post], bool]
    preview: Callable[[DecisionForm], Awaitable[Mapping[str, object]]]
    complete: Callable[[DecisionForm], Awaitable[DecisionRequest]]


class InboxLine(NamedTuple):
    """A line of a section of the inbox; it leads to `href`. Its texts may be those of an agent."""

    href: str
    head: Sentence
    detail: Sentence


class InboxSection(NamedTuple):
    """What else waits for a person, on a page of its own, and how many more lines that page has."""

    name: str
    heading: str
    href: str
    lines: Sequence[InboxLine]
    more: int = 0


class StreamPart(Protocol):
    """Events of a live stream: read after the topic changed, and again in `left_s` seconds."""

    event: str

    @property
    def topic(self) -> str:
        """The topic of the watch."""

    @property
    def left_s(self) -> float:
        """Seconds until the data changes by itself."""

    async def read_change(self) -> str | None:
        """Return the data if it has changed since the last call."""


class Addition(NamedTuple):
    """A feature's row; what it returns for a page goes into the context of the template."""

    sign_in: Callable[[Wiring], Mapping[str, Any]] | None = None
    inbox: Callable[[Wiring, str], Awaitable[Mapping[str, object]]] | None = None
    section: Callable[[Wiring, Visitor], Awaitable[InboxSection | None]] | None = None
    item: Callable[[ItemPage], Awaitable[Mapping[str, object]]] | None = None
    run: Callable[[RunPage], Awaitable[Mapping[str, object]]] | None = None
    decision: DecisionPart | None = None
    form: ItemForm | None = None
    stream: Callable[[Wiring, str], StreamPart] | None = None


def additions_of(request: Request) -> Sequence[Addition]:
    """Return the rows of the app's features."""
    additions: Sequence[Addition] = request.app.state.additions
    return additions
