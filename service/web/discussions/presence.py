"""Who has an item's page open: the page says so every 10 seconds, and once more when it closes."""

import json

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sayso.core.clock import now_ms
from sayso.core.text.invisible import write_signs
from sayso.core.transitions.deciding import find_item
from service.store.presence import Presence
from service.web.form_posts import RecordedRoute, read_post
from service.web.sessions import SignedIn, wiring_of

router = APIRouter(route_class=RecordedRoute)
_LONGEST_S = 3_600.0


class Others:
    """The other people at items, as one stream has sent them."""

    def __init__(self, presence: Presence, name: str) -> None:
        self._presence, self._name = presence, name
        self._sent: dict[str, list[str]] = {}
        self._until_ms = 0

    @property
    def left_s(self) -> float:
        """Seconds until somebody is gone unless their page says more."""
        return max(0.0, (self._until_ms - now_ms()) / 1000) if self._until_ms else _LONGEST_S

    async def read_change(self) -> str | None:
        """Return everybody by item as JSON if that has changed since the last one."""
        present = await self._presence.read(now_ms())
        self._until_ms = present.until_ms
        others = {
            row_id: [write_signs(name) for name in names if name != self._name]
            for row_id, names in present.people.items()
        }
        others = {row_id: names for row_id, names in others.items() if names}
        if others == self._sent:
            return None
        self._sent = others
        return json.dumps(others)


@router.post("/items/{suspension_id}/{item_id}/here")
async def say_here(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Note that the visitor has the item open, or with `left` that they have closed it."""
    post = await read_post(request, visitor)
    wiring = wiring_of(request)
    find_item((await wiring.desk.suspensions.read(suspension_id)).record, item_id)
    row_id = f"{suspension_id}-{item_id}"
    if "left" in post:
        await wiring.part(Presence).forget(row_id, visitor.name)
    else:
        await wiring.part(Presence).note(row_id, visitor.name, now_ms())
    return Response(status_code=204)
