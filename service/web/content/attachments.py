"""Attached files as the item's page shows them, with secrets masked."""

from collections.abc import Iterable

from service.store.runs.attachments import Attachment, Attachments
from service.web.content.secrets import ItemView


async def read_files(attachments: Attachments, view: ItemView) -> dict[str, object]:
    """Return the files that the agent attached, which are claims, and those of reviewers."""
    record, item = view.record, view.item
    files = _mask(await attachments.list_all(record.run.id, record.id, item.item_id), view)
    return {
        "agent_files": [file for file in files if file.author_kind == "agent"],
        "file_limit_bytes": attachments.limit_bytes,
        "files": [file for file in files if file.author_kind == "human"],
    }


def _mask(files: Iterable[Attachment], view: ItemView) -> list[Attachment]:
    scrub = view.secrets.scrub if view.secrets.masked else str
    return [file.model_copy(update={"name": scrub(file.name), "preview": scrub(file.preview)}) for file in files]
