"""Reviewers' comments as pages show them: in a list, and as lines of a timeline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc, new_id
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.language import _
from sayso.core.text.redaction import Redacted
from service.edge.web.content.cards import item_href
from service.edge.web.content.details import ItemView, read_files
from service.edge.web.content.timeline import Line
from service.features.discussions.store import Attachments, Comment, Comments


@dataclass(frozen=True)
class Remark:
    """A comment with secrets masked, the path of its item and the name of the item's tool."""

    author: str
    text: str
    at_ms: int
    href: str
    about: str

    @property
    def export(self) -> JsonObject:
        """The comment as a value of an export."""
        return {"at": iso_utc(self.at_ms), "author": self.author, "text": self.text}

    @property
    def line(self) -> Line:
        """The comment as a line of a timeline."""
        sentence = _("%(who)s commented on %(item)s", who=self.author, item=self.about)
        return Line(seq=0, at_ms=self.at_ms, kind="comment", tone="plain", text=sentence, note=self.text)


async def read_discussion(
    comments: Comments, attachments: Attachments, view: ItemView, lines: Sequence[Line]
) -> dict[str, object]:
    """Return an item's files and remarks, the timeline with those on the whole run, and a new comment's nonce."""
    record, item = view.record, view.item
    remarks = list_remarks(await comments.list_all(record.run.id), [record], view.secrets)
    return {
        **await read_files(attachments, view),
        "lines": insert_remarks(lines, remarks),
        "remarks": [remark for remark in remarks if remark.href == item_href(record, item)],
        "nonce": new_id("com"),
    }


def list_remarks(comments: Iterable[Comment], records: Iterable[SuspensionRecord], secrets: Redacted) -> list[Remark]:
    """Return the comments on items of a run; `records` name the tools."""
    tools = {(record.id, item.item_id): item.tool.name for record in records for item in record.items}
    return [
        Remark(
            author=comment.author,
            text=secrets.scrub(comment.text) if secrets.masked else comment.text,
            at_ms=comment.at_ms,
            href=f"/items/{comment.suspension_id}/{comment.item_id}",
            about=tools.get((comment.suspension_id, comment.item_id), _("another item")),
        )
        for comment in comments
    ]


def insert_remarks(lines: Sequence[Line], remarks: Sequence[Remark]) -> list[Line]:
    """Return the lines of a timeline with a line for each remark, behind everything that happened before it."""
    result: list[Line] = []
    rest = [*remarks]
    for line in lines:
        while rest and rest[0].at_ms < line.at_ms:
            result.append(rest.pop(0).line)
        result.append(line)
    return [*result, *(remark.line for remark in rest)]
