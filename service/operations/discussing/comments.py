"""Add comments to items, open or decided."""

from hashlib import sha256

from sayso.core.clock import new_id
from sayso.core.text.redaction import Redacted
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.masking import list_typed
from service.store.runs.comments import Comment, Comments
from service.wiring import Wiring


async def add_comment(
    wiring: Wiring, suspension_id: str, item_id: str, text: str, author: str, key: str | None
) -> Comment:
    """Save a person's comment on an item, open or decided; a repeated `key` of the same person comments once.

    Secrets that people typed in the run are masked in it.
    """
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    find_item(record, item_id)
    id_ = f"com_{sha256(f'{author} {key}'.encode()).hexdigest()[:32]}" if key else new_id("com")
    text = Redacted({}, list_typed(record)).scrub(text)
    comment = Comment(id=id_, suspension_id=suspension_id, item_id=item_id, author=author, text=text)
    await wiring.part(Comments).add(record.run.id, comment)
    return comment
