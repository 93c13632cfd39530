"""How suspensions are shown to people and to agents."""

from collections.abc import Iterable

from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import SuspensionRecord
from sayso.wire.suspensions import SuspensionView, UnreadableView, show_suspension
from service.core.operations.masking import mask_typed
from service.core.store.suspensions.reading import UnreadableRecord


def view_suspension(record: SuspensionRecord, freezes: Iterable[Freeze], owner: str | None = None) -> SuspensionView:
    """Return the view of a suspension; with `owner`, that of an agent.

    Secrets that people typed are masked for everybody; the call gets them with its permit.
    """
    return show_suspension(mask_typed(record), tuple(freezes), owner)


def view_unreadable(records: Iterable[object]) -> list[UnreadableView]:
    """Return the views of those records that cannot be read."""
    return [UnreadableView.model_validate(record) for record in records if isinstance(record, UnreadableRecord)]
