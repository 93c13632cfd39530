"""Reviewers' comments and attached files as pages show them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc, new_id
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.language import _
from sayso.core.text.redaction import Redacted
from service.edge.web.additions import ItemPage, RunPage
from service.edge.web.content.cards import item_href
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


async def add_to_item(page: ItemPage) -> dict[str, object]:
    """Return an item's files and remarks, the timeline with those on the whole run, and a new comment's nonce."""
    record, item, secrets = page.view.record, page.view.item, page.view.secrets
    attachments = page.wiring.part(Attachments)
    scrub = secrets.scrub if secrets.masked else str
    files = [
        file.model_copy(update={"name": scrub(file.name), "preview": scrub(file.preview)})
        for file in await attachments.list_all(record.run.id, record.id, item.item_id)
    ]
    remarks = list_remarks(await page.wiring.part(Comments).list_all(record.run.id), [record], secrets)
    return {
        "agent_files": [file for file in files if file.author_kind == "agent"],  # they are claims
        "file_limit_bytes": page.wiring.settings.attachment_limit_bytes,
        "files": [file for file in files if file.author_kind == "human"],
        "lines": insert_remarks(page.lines, remarks),
        "remarks": [remark for remark in remarks if remark.href == item_href(record, item)],
        "nonce": new_id("com"),
    }


async def add_to_run(page: RunPage) -> dict[str, object]:
    """Return the remarks on a run's items, and its timeline with them."""
    remarks = list_remarks(await page.wiring.part(Comments).list_all(page.run_id), page.records, page.secrets)
    return {"lines": insert_remarks(page.lines, remarks), "remarks": remarks}


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
