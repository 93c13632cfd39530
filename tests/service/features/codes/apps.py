"""People with authenticator apps."""

import base64
import hmac
import re
import struct

from sayso.core.clock import now_ms
from service.core.store.people import People
from service.core.wiring import Wiring
from tests.service.edge.web.sites import PASSWORD, Visit

CODES = "/me/codes"


def make_code(seed: str, at_ms: int | None = None) -> str:
    """Return the code of an app at a time, as RFC 6238 computes it; by default now."""
    step = struct.pack(">Q", (now_ms() if at_ms is None else at_ms) // 30_000)
    digest = hmac.digest(base64.b32decode(seed), step, "sha1")
    begin = digest[-1] & 15
    number = struct.unpack(">I", digest[begin : begin + 4])[0] & 0x7FFF_FFFF
    return f"{number % 1_000_000:06}"


def make_wrong_code(seed: str) -> str:
    """Return a code that is none of the app's, now and a minute around."""
    near = {make_code(seed, now_ms() + minute * 30_000) for minute in range(-3, 4)}
    return next(code for code in map("{:06}".format, range(10)) if code not in near)


async def forget_use(wiring: Wiring, name: str = "anna") -> None:
    """Let the code of this moment count again, as the next one would half a minute later."""
    await wiring.part(People).change_reviewer(
        name,
        lambda person: person.model_copy(
            update={"app": person.app and person.app.model_copy(update={"used_step": -1})}
        ),
    )


async def add_app(wiring: Wiring, name: str) -> str:
    """Add an app of a person, whose code of this moment still counts; return its secret."""
    codes, seed = wiring.reviewers.codes, "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    await codes.add(name, codes.seal(seed, name), make_code(seed))
    await forget_use(wiring, name)
    return seed


async def enrol(visit: Visit) -> str:
    """Add an app on the visitor's page; return its secret."""
    assert await visit.send(CODES, act="begin") == f"{CODES}?done=begin"
    seed = read_seed(await visit.read(CODES))
    assert await visit.send(CODES, act="add", code=make_code(seed)) == f"{CODES}?done=add"
    await forget_use(visit.wiring)
    return seed


def read_seed(page: str) -> str:
    """Return the secret that a page shows."""
    shown = re.search(r"<pre[^>]*>([A-Z2-7]{32})</pre>", page)
    assert shown, page
    return shown[1]


async def make_carla(wiring: Wiring) -> str:
    """Make Carla, with a password and an app; return the app's secret."""
    await wiring.reviewers.add("carla", PASSWORD, ("reviewer",))
    return await add_app(wiring, "carla")
