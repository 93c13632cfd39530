"""Emergency rights: one person takes them for an hour, for a typed reason, and others are informed at once."""

from collections.abc import Sequence

from sayso.core.clock import iso_utc, now_ms
from sayso.core.text.language import _
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound
from service.channels.kinds import Channels
from service.channels.previews import send_notices
from service.core.auth.credentials import Principal
from service.core.auth.roles import ADMIN, EMERGENCY
from service.core.store.directory import Emergency, EmergencyStore
from service.core.store.people import Reviewer
from service.core.wiring import Wiring

LASTS_MS = 3_600_000
FEWEST_INFORMED = 2
FEWEST_CHARS, MOST_CHARS = 10, 500


async def break_glass(parts: Wiring, channels: Channels, by: Principal, reason: str) -> Emergency:
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
    emergencies = await parts.roles.list_emergencies(fresh=True)
    if any(emergency.person == by.name for emergency in emergencies):
        raise Conflict(_("You have emergency rights already. They end by themselves; then you can take them again."))
    informed = choose_informed(await parts.reviewers.list_all(), by.name)
    if not informed:
        raise Conflict(_("Nobody else could be informed. Ask for another account, and take emergency rights then."))
    at_ms = now_ms()
    emergency = Emergency(person=by.name, reason=reason, at_ms=at_ms, until_ms=at_ms + LASTS_MS, informed=informed)
    await parts.part(EmergencyStore).save(emergency)
    until = iso_utc(emergency.until_ms)
    text = f"{by.name} has taken emergency rights on Sayso until {until}: {reason}. An admin can end them."
    for person in informed:
        channels.notices.later(send_notices(parts, channels, person, text))
    await parts.roles.list_emergencies(fresh=True)
    return emergency


def choose_informed(people: Sequence[Reviewer], but: str) -> tuple[str, ...]:
    """Return who is informed: all other admins, and others until they are two."""
    others = [person for person in people if person.active and person.name != but]
    admins = sorted(person.name for person in others if ADMIN in person.roles)
    rest = sorted(person.name for person in others if ADMIN not in person.roles)
    return (*admins, *rest[: max(0, FEWEST_INFORMED - len(admins))])


async def end_own_emergency(parts: Wiring, by: Principal) -> None:
    """End the emergency rights of the caller; raises `NotFound`, and `NotAllowed` for a key."""
    if by.key_id is not None:
        raise NotAllowed(_("A key has no emergency rights. Sign in first."))
    await end_emergency(parts, by.name)


async def end_emergency(parts: Wiring, name: str) -> None:
    """End the emergency rights of a person; raises `NotFound`."""
    emergencies = await parts.part(EmergencyStore).list_all()
    ended = [emergency.person for emergency in emergencies if emergency.until_ms <= now_ms()]
    if name not in {emergency.person for emergency in emergencies} - {*ended}:
        raise NotFound(_("%(who)s has no emergency rights.", who=name[:64]))
    await parts.part(EmergencyStore).delete(name, *ended)
    await parts.roles.list_emergencies(fresh=True)
