"""Rules of groups: their names, and who may change them."""

from collections.abc import Collection, Iterable

from sayso.core.calendar import WorkingHours, check_country
from sayso.core.clock import now_ms
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound
from service.core.auth.reviewers import NAME_PATTERN, NAME_RULE, refuse_our_names
from service.core.auth.roles import Rights
from service.core.store.directory import Group, GroupStore
from service.core.store.people import People

MOST_GROUPS = 500
MOST_MEMBERS = 500


class Groups:
    """The groups of one tenant."""

    def __init__(self, store: GroupStore, people: People) -> None:
        self._store, self._people = store, people
        self.list_all = store.list_all

    async def create(
        self,
        name: str,
        members: tuple[str, ...],
        editors: tuple[str, ...],
        by: str,
        working_hours: WorkingHours | None = None,
    ) -> Group:
        """Create a group; raises `InvalidInput` for a bad name or unknown people, `Conflict` for a taken name."""
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidInput(NAME_RULE)
        refuse_our_names(name)
        if len(await self.list_all()) >= MOST_GROUPS:
            raise Conflict(f"There are {MOST_GROUPS} groups already. Delete one first.")
        members, editors = await self._check_people(members), await self._check_people(editors)
        check_working_hours(working_hours)

        def create(known: Group | None) -> Group:
            if known is not None:
                raise Conflict(f"There is already a group named {name}. Choose another name.")
            hours, at_ms = working_hours, now_ms()
            return Group(name=name, members=members, editors=editors, working_hours=hours, created_at_ms=at_ms)

        return _found(await self._store.change(name, create), name)

    async def update(
        self,
        name: str,
        members: tuple[str, ...],
        editors: tuple[str, ...],
        by: str,
        rights: Rights,
        working_hours: WorkingHours | None = None,
    ) -> Group:
        """Replace members, editors and hours; raises `NotFound`, `InvalidInput`, and `NotAllowed` for editors."""
        known = await self.read(name)
        members = await self._check_people(members, known.members)
        editors = await self._check_people(editors, known.editors)
        check_working_hours(working_hours)

        def update(current: Group | None) -> Group:
            group = _found(current, name)
            check_editor(group, by, rights)
            if not rights.has("manage_groups") and set(editors) != set(group.editors):
                raise NotAllowed("Only an admin can change the editors of a group. Ask an admin.", role="admin")
            return group.model_copy(update={"members": members, "editors": editors, "working_hours": working_hours})

        return _found(await self._store.change(name, update), name)

    async def fill(self, name: str, names: Iterable[str], kept: Collection[str]) -> Group:
        """Create a group or replace those of its members that are `kept` by a directory; raises `Conflict`."""

        def fill(group: Group | None) -> Group:
            group = group or Group(name=name, created_at_ms=now_ms())
            members = tuple(sorted({*names, *(member for member in group.members if member not in kept)}))
            if len(members) > MOST_MEMBERS:
                raise Conflict(f"A group has at most {MOST_MEMBERS} people, not {len(members)}. Make several groups.")
            return group.model_copy(update={"members": members})

        if await self._store.find(name) is None and len(await self.list_all()) >= MOST_GROUPS:
            raise Conflict(f"There are {MOST_GROUPS} groups already. Delete one first.")
        return _found(await self._store.change(name, fill), name)

    async def delete(self, name: str, by: str) -> None:
        """Delete a group; raises `NotFound`. Rules that still name it find nobody."""

        def delete(current: Group | None) -> None:
            _found(current, name)

        await self._store.change(name, delete)

    async def set_member(self, name: str, person: str, *, member: bool) -> bool:
        """Add or remove a member; return whether that changed anything. A missing group is created for its first."""
        known = await self._store.find(name)
        if member == (known is not None and person in known.members):
            return False
        if known is None and len(await self.list_all()) >= MOST_GROUPS:
            raise Conflict(f"There are {MOST_GROUPS} groups already. Delete one first.")

        def change(current: Group | None) -> Group | None:
            group = current or Group(name=name, created_at_ms=now_ms())
            members = {*group.members, person} if member else {*group.members} - {person}
            if len(members) > MOST_MEMBERS:
                raise Conflict(f"The group {name} has {MOST_MEMBERS} members already. Make several groups.")
            return group.model_copy(update={"members": tuple(sorted(members))}) if current or member else None

        await self._store.change(name, change)
        return True

    async def read(self, name: str) -> Group:
        """Return a group; raises `NotFound`."""
        return _found(await self._store.find(name), name)

    async def _check_people(self, names: tuple[str, ...], known: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the names sorted; raises `InvalidInput` for too many, unknown, or newly named deactivated people."""
        if len(names) > MOST_MEMBERS:
            raise InvalidInput(f"A group has at most {MOST_MEMBERS} people, not {len(names)}. Make several groups.")
        added = set(names).difference(known)
        reviewers = await self._people.list_reviewers() if added else ()
        active = {reviewer.name for reviewer in reviewers if reviewer.active}
        unknown = sorted(added - active)
        if unknown:
            raise InvalidInput(
                f"No active reviewer is named {', '.join(unknown)}. Correct the name, or add the person."
            )
        return tuple(sorted(set(names)))


def may_edit(group: Group, name: str, rights: Rights) -> bool:
    """Return whether this person may change the members: an admin or an editor of the group."""
    return rights.has("manage_groups") or name in group.editors


def check_editor(group: Group, name: str, rights: Rights) -> None:
    """Raise `NotAllowed` unless this person may change the members."""
    if not may_edit(group, name, rights):
        editors = ", ".join(group.editors)
        whom = f"{editors} or an admin" if editors else "an admin"
        raise NotAllowed(f"You cannot change the group {group.name}. Ask {whom}.", editors=list(group.editors))


def check_working_hours(working: WorkingHours | None) -> None:
    """Raise `InvalidInput` for holidays of an unknown country."""
    if working is not None:
        check_country(working.country, working.subdivision)


def _found(group: Group | None, name: str) -> Group:
    if group is None:
        raise NotFound(f"There is no group named {name!r}. List the groups to see their names.")
    return group
