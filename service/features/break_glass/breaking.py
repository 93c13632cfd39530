"""Emergency rights: one person takes them for an hour, for a typed reason, and others are informed at once."""

from collections.abc import Sequence

from sayso.core.clock import iso_utc, now_ms
from sayso.core.text.language import _
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound
from service.channels.kinds import Channels
from service.channels.previews import send_notices
from service.core.auth.credentials import Principal
from service.core.auth.roles import ADMIN, EMERGENCY
from service.core.store.directory import Glass, GlassStore
from service.core.store.people import Reviewer
from service.core.wiring import Wiring

LASTS_MS = 3_600_000
FEWEST_INFORMED = 2
FEWEST_CHARS, MOST_CHARS = 10, 500


async def break_glass(parts: Wiring, channels: Channels, by: Principal, reason: str) -> Glass:
    """Give a person emergency rights for an hour; raises `InvalidInput`, `NotAllowed`, `Conflict`."""
    reason = " ".join(reason.split())
    if by.key_id is not None:
        raise NotAllowed(_("A key has no emergency rights. Sign in first."))
    if not FEWEST_CHARS <= len(reason) <= MOST_CHARS:
        limits = {"fewest": FEWEST_CHARS, "most": MOST_CHARS}
        raise InvalidInput(_("The reason has %(fewest)s to %(most)s characters. Say what happens.", **limits))
    lasting = await parts.reviewers.find_rights(by.name)
    if all(lasting.has(permission) for permission in EMERGENCY):
        raise Conflict(_("You may do all of this already."))
    glasses = await parts.roles.list_glasses(fresh=True)
    if any(glass.person == by.name for glass in glasses):
        raise Conflict(_("You have emergency rights already. They end by themselves; then you can take them again."))
    informed = choose_informed(await parts.reviewers.list_all(), by.name)
    if not informed:
        raise Conflict(_("Nobody else could be informed. Ask for another account, and take emergency rights then."))
    at_ms = now_ms()
    glass = Glass(person=by.name, reason=reason, at_ms=at_ms, until_ms=at_ms + LASTS_MS, informed=informed)
    await parts.part(GlassStore).save(glass)
    until = iso_utc(glass.until_ms)
    text = f"{by.name} has taken emergency rights on Sayso until {until}: {reason}. An admin can end them."
    for person in informed:
        channels.notices.later(send_notices(parts, channels, person, text))
    await parts.roles.list_glasses(fresh=True)
    return glass


def choose_informed(people: Sequence[Reviewer], but: str) -> tuple[str, ...]:
    """Return who is informed: all other admins, and others until they are two."""
    others = [person for person in people if person.active and person.name != but]
    admins = sorted(person.name for person in others if ADMIN in person.roles)
    rest = sorted(person.name for person in others if ADMIN not in person.roles)
    return (*admins, *rest[: max(0, FEWEST_INFORMED - len(admins))])


async def end_own_glass(parts: Wiring, by: Principal) -> None:
    """End the emergency rights of the caller; raises `NotFound`, and `NotAllowed` for a key."""
    if by.key_id is not None:
        raise NotAllowed(_("A key has no emergency rights. Sign in first."))
    await end_glass(parts, by.name)


async def end_glass(parts: Wiring, name: str) -> None:
    """End the emergency rights of a person; raises `NotFound`."""
    glasses = await parts.part(GlassStore).list_all()
    ended = [glass.person for glass in glasses if glass.until_ms <= now_ms()]
    if name not in {glass.person for glass in glasses} - {*ended}:
        raise NotFound(_("%(who)s has no emergency rights.", who=name[:64]))
    await parts.part(GlassStore).delete(name, *ended)
    await parts.roles.list_glasses(fresh=True)
