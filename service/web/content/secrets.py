"""An item as its page shows it: with its secrets masked, until the reviewer has them shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sayso.core.clock import HOUR_MS
from sayso.core.records.items import Answer, Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.language import _
from sayso.core.text.redaction import Redacted
from sayso.errors import InvalidInput
from service.forms.answers import Forms, make_forms
from service.logs import log
from service.operations.masking import collect_secrets, find_secrets, mask_item, mask_record
from service.store.channels.notes import ChannelNotes
from service.web.content.details import Result
from service.web.content.timeline import Line

SHOW = "show"
"""The control of a form whose page shows the secrets; with the value `only` the form decides nothing."""

_NOTHING = Redacted({}, frozenset())
_SHOWN_MS = HOUR_MS
_PLACE = "web"


@dataclass(frozen=True)
class ItemView:
    """The record and item to show, and the secrets that are masked in other texts."""

    record: SuspensionRecord
    item: Item
    has_secrets: bool
    shown: bool
    secrets: Redacted

    def make_forms(self, definition: ToolDefinition | None) -> Forms:
        """Return the decision forms; nothing can be run while a value is masked."""
        forms = make_forms(self.item, definition, nested=True)
        if not self.has_secrets or self.shown:
            return forms
        return replace(
            forms, allowed=tuple(answer for answer in forms.allowed if answer is Answer.DENY), args=(), value=()
        )

    def mask_result(self, result: Result | None) -> Result | None:
        """Return the call's result with secrets masked."""
        if result is None:
            return None
        scrub = self.secrets
        return replace(result, output=scrub.scrub_json(result.output), error=scrub.scrub(result.error))

    def mask_lines(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines of the timeline with secrets masked."""
        return mask_lines(lines, self.secrets)


async def note_shown(notes: ChannelNotes, reviewer: str, record: SuspensionRecord, item: Item) -> None:
    """Log that a reviewer had the secrets of an item shown, and remember it for an hour."""
    log.info("secrets_shown", reviewer=reviewer, suspension=record.id, item=item.item_id)
    await notes.save(_PLACE, f"shown {reviewer} {item.digest}", "shown", _SHOWN_MS)


async def check_shown(notes: ChannelNotes, reviewer: str, view: ItemView, answer: str) -> None:
    """Raise `InvalidInput` for a decision that runs a call whose secrets the reviewer did not have shown."""
    runs = view.has_secrets and view.item.open and answer != Answer.DENY
    if runs and await notes.read(_PLACE, f"shown {reviewer} {view.item.digest}") is None:
        raise InvalidInput(_("Show the secret values before you approve. Nothing was changed."))


def look_at(record: SuspensionRecord, item: Item, definition: ToolDefinition | None, *, shown: bool) -> ItemView:
    """Return the item as its page shows it."""
    schema = definition.parameters if definition is not None else None
    own, all_secrets = find_secrets(item, schema), collect_secrets([record])
    secrets = Redacted({}, own.secrets | all_secrets.secrets)
    if not secrets.masked:
        return ItemView(record, item, False, False, _NOTHING)
    if shown:
        return ItemView(record, item, own.masked, own.masked, _NOTHING)
    return ItemView(mask_record(record), mask_item(item, schema), own.masked, False, secrets)


def mask_lines(lines: Sequence[Line], secrets: Redacted) -> list[Line]:
    """Return the lines of a timeline with secrets masked."""
    if not secrets.masked:
        return [*lines]
    scrub = secrets.scrub
    return [replace(line, text=scrub(line.text), note=scrub(line.note), data=scrub(line.data)) for line in lines]
