"""Sign in through every door, and record each sign-in and refusal."""

from sayso.errors import NotAuthenticated, TooManyRequests
from service.auth.reviewers import NAME_PATTERN, Origin, SignIn
from service.wiring import Wiring

_ACT = "signed_in"


async def sign_in(parts: Wiring, name: str, password: str, origin: Origin, door: str) -> SignIn:
    """Open a session for the right name and password; raises as `Reviewers.sign_in` does.

    A refusal keeps the name only if it can be one: nobody else's text, and seldom a password in the wrong field.
    """
    try:
        opened = await parts.reviewers.sign_in(name, password, origin)
    except (NotAuthenticated, TooManyRequests) as error:
        claimed = name if NAME_PATTERN.fullmatch(name) else ""
        await parts.activity.refuse(_ACT, "", error.message, door=door, address=origin.address, target=claimed)
        raise
    by, client = opened.session.name, origin.client
    marks = {"client": client, "password_by": opened.password_by}
    await parts.activity.record(_ACT, by, door=door, address=origin.address, **marks)
    return opened
