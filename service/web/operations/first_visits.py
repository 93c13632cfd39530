"""Whether a desk is new: the inbox then leads admins to the first steps."""

from fastapi import Request
from fastapi.responses import Response

from service.settings import Settings
from service.web.sessions import Visitor, set_cookie, wiring_of

_COOKIE = "sayso_skipped"
_KEPT_S = 30 * 86_400


async def is_first_visit(request: Request, visitor: Visitor) -> bool:
    """Return whether nothing was decided on this desk yet, and this admin has not skipped the first steps."""
    if not visitor.is_admin or _COOKIE in request.cookies:
        return False
    return not await wiring_of(request).runs.decided(limit=1)


def skip_first_steps(response: Response, settings: Settings) -> None:
    """Keep in this browser that the first steps were skipped."""
    set_cookie(response, settings, _COOKIE, "1", _KEPT_S)
