"""What people say about an item to each other, apart from its record: it changes no digest and no decision."""

from hashlib import sha256

from sayso.clock import new_id
from sayso.transitions.deciding import find_item
from service.store.runs.comments import Comment
from service.wiring import Wiring


async def add_comment(
    wiring: Wiring, suspension_id: str, item_id: str, text: str, author: str, key: str | None
) -> Comment:
    """Save a person's comment on an item, open or decided; a repeated `key` of the same person comments once."""
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    find_item(record, item_id)
    id_ = f"com_{sha256(f'{author} {key}'.encode()).hexdigest()[:32]}" if key else new_id("com")
    comment = Comment(id=id_, suspension_id=suspension_id, item_id=item_id, author=author, text=text)
    await wiring.comments.add(record.run.id, comment)
    return comment
