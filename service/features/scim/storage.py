"""Where SCIM reads and writes: the directory's entries, and the people and groups of Sayso that follow them."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from scim2_models import (
    InvalidValueException,
    Meta,
    NotFoundException,
    PreconditionFailedException,
    Resource,
    ResourceType,
    ResponseParameters,
    SearchRequest,
    UniquenessException,
)
from scim2_server.memory import InMemoryStorage
from scim2_server.storage import AsyncScimStorage, SearchPage

from sayso.core.clock import new_id, now_ms
from service.core.auth.reviewers import NAME_PATTERN, NAME_RULE, refuse_our_names
from service.core.operations.people import deactivate_reviewer, refuse_agents_name
from service.core.store.people import DIRECTORY
from service.core.wiring import Wiring
from service.features.scim.model import Group, Member, User, name_group
from service.features.scim.store import DirectoryStore, Entry, Kind, NameTaken

_BY_LABEL = re.compile(r'(?:userName|displayName) eq "([^"\\]*)"', re.IGNORECASE)
_KEPT_ELSEWHERE = {"id", "meta", "schemas", "active", "members"}


class DirectoryStorage(AsyncScimStorage):
    """The directory of one tenant, written by the key `by` from `address`."""

    def __init__(self, parts: Wiring, by: str, address: str) -> None:
        self._parts, self._by, self._address = parts, by, address
        self._store = parts.part(DirectoryStore)

    async def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,
    ) -> Resource[Any]:
        return (await self._show((await self._known(resource_type, resource_id),)))[0]

    async def search(
        self, resource_types: list[ResourceType], search_request: SearchRequest[Any], *, position: Any = None
    ) -> SearchPage:
        wanted = _BY_LABEL.fullmatch(str(search_request.filter or ""))
        entries: list[Entry] = []
        for kind in map(_kind_of, resource_types):
            if wanted is None:
                entries += await self._store.list_all(kind)
            elif (entry := await self._store.find_by_label(kind, wanted[1])) is not None:
                entries.append(entry)
        resources = await self._show(entries)
        return await asyncio.to_thread(_search, resources, resource_types, search_request)

    async def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        kind, label = _kind_of(resource_type), _label_of(resource)
        name = await self._choose_name(kind, label)
        at_ms = now_ms()
        entry = Entry(id=new_id("scim"), kind=kind, name=name, label=label, created_at_ms=at_ms, changed_at_ms=at_ms)
        return await self._save(entry.id, None, entry.model_copy(update=self._read(resource)), resource)

    async def update(
        self, resource_type: ResourceType, resource: Resource[Any], *, expected_version: str | None = None
    ) -> Resource[Any]:
        known = await self._known(resource_type, resource.id or "")
        update = {"label": _label_of(resource), "changed_at_ms": now_ms(), "version": known.version + 1}
        changed = known.model_copy(update=update | self._read(resource))
        shown = await self._check_version(known, expected_version)
        if isinstance(shown, User) and isinstance(resource, User) and resource.active == shown.active:
            resource = resource.model_copy(update={"active": None})  # what another request does to it, stays
        return await self._save(known.id, known, changed, resource)

    async def delete(
        self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None
    ) -> None:
        known = await self._known(resource_type, resource_id)
        await self._check_version(known, expected_version)
        if known.kind == "User":
            await self._set_active(known.name, False)
            for group in await self._store.list_all("Group"):
                if known.id in group.members:
                    await self._remove_member(group, known.id)
        else:
            await self._parts.groups.delete(known.name, self._by)
            await self._record("group_deleted", known.name)
        await self._store.change(known.id, lambda _: None)

    async def _known(self, resource_type: ResourceType, resource_id: str) -> Entry:
        entry = await self._store.find(resource_id)
        if entry is None or entry.kind != _kind_of(resource_type):
            raise NotFoundException(detail=f"There is no {resource_type.name} {resource_id[:100]!r}.")
        return entry

    async def _check_version(self, entry: Entry, expected: str | None) -> Resource[Any]:
        """Return the resource as it is; raises `PreconditionFailedException` for another version."""
        shown = (await self._show((entry,)))[0]
        if expected is not None and shown.meta is not None and shown.meta.version != expected:
            raise PreconditionFailedException
        return shown

    async def _choose_name(self, kind: Kind, label: str) -> str:
        """Return the name in Sayso of a new user or group. What was made by hand is never taken over."""
        name = label.casefold() if kind == "User" else name_group(label)
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidValueException(detail=f"{label[:100]!r} cannot be a name in Sayso. {NAME_RULE}")
        refuse_our_names(name)
        if kind == "User":
            await refuse_agents_name(self._parts, name)
            person = await self._parts.reviewers.find(name)
            local = person is not None and person.managed_by != DIRECTORY
        else:
            local = any(group.name == name for group in await self._parts.groups.list_all())
            local = local and await self._store.find_by_label(kind, label) is None
        if local:
            what = "person" if kind == "User" else "group"
            raise UniquenessException(detail=f"Sayso has a {what} named {name} that is not from the directory.")
        return name

    def _read(self, resource: Resource[Any]) -> dict[str, Any]:
        members = resource.members or [] if isinstance(resource, Group) else []
        ids = dict.fromkeys(member.value for member in members if member.value)
        return {
            "attributes": {key: value for key, value in resource.model_dump().items() if key not in _KEPT_ELSEWHERE},
            "members": tuple(ids),
        }

    async def _save(self, entry_id: str, known: Entry | None, changed: Entry, resource: Resource[Any]) -> Resource[Any]:
        """Save an entry, then make its person or group follow; a repeated request completes what a crash cut off.

        A person is deactivated before: that holds even where the entry was changed meanwhile.
        """
        active = resource.active if isinstance(resource, User) else None
        if changed.kind == "Group":
            await self._check_members(changed.members)
        elif active is False:
            await self._set_active(changed.name, False)

        def save(current: Entry | None) -> Entry:
            if (current.version if current else 0) != (known.version if known else 0):
                raise PreconditionFailedException
            return changed

        try:
            await self._store.change(entry_id, save)
        except NameTaken:
            raise UniquenessException(detail=f"Another {changed.kind} has the name {changed.label[:100]!r}.") from None
        if isinstance(resource, User):
            await self._parts.reviewers.add_managed(changed.name, DIRECTORY)
            if known is None:
                await self._record("person_added", changed.name)
                await self._set_active(changed.name, active is not False)
            elif active:
                await self._set_active(changed.name, True)
        else:
            await self._fill_group(changed.id)
            await self._record("group_created" if known is None else "group_changed", changed.name)
        return (await self._show((changed,)))[0]

    async def _check_members(self, ids: Iterable[str]) -> None:
        for entry_id in ids:
            entry = await self._store.find(entry_id)
            if entry is None or entry.kind != "User":
                raise InvalidValueException(detail=f"There is no User {entry_id[:100]!r} to be a member.")

    async def _set_active(self, name: str, active: bool) -> None:
        """Activate or deactivate a person; deactivation ends sessions, and voids decisions on open items."""
        person = await self._parts.reviewers.find(name)
        if person is None or person.active == active:
            return
        if active:
            await self._parts.reviewers.activate(name)
        else:
            await deactivate_reviewer(self._parts, name, self._by)
        await self._record("person_activated" if active else "person_deactivated", name)

    async def _fill_group(self, entry_id: str) -> None:
        """Give a group the directory's latest members. Those who were added by hand stay."""
        group = await self._store.find(entry_id)
        while group is not None:
            users = [await self._store.find(member) for member in group.members]
            names = {user.name for user in users if user is not None}
            await self._parts.groups.fill(group.name, names, await self._store.list_people())
            filled, group = group, await self._store.find(entry_id)
            if group is None or group.version == filled.version:
                return

    async def _remove_member(self, group: Entry, user_id: str) -> None:
        def remove(current: Entry | None) -> Entry | None:
            if current is None:
                return None
            members = tuple(member for member in current.members if member != user_id)
            return current.model_copy(update={"members": members, "version": current.version + 1})

        await self._store.change(group.id, remove)
        await self._fill_group(group.id)

    async def _record(self, act: str, target: str) -> None:
        await self._parts.activity.record(act, self._by, door="scim", address=self._address, target=target)

    async def _show(self, entries: Sequence[Entry]) -> list[Resource[Any]]:
        people = {person.name: person.active for person in await self._parts.reviewers.list_all()} if entries else {}
        return [_show(entry, people.get(entry.name, False)) for entry in entries]


def _show(entry: Entry, active: bool) -> Resource[Any]:
    meta = Meta(
        resource_type=entry.kind,
        created=datetime.fromtimestamp(entry.created_at_ms / 1000, UTC),
        last_modified=datetime.fromtimestamp(entry.changed_at_ms / 1000, UTC),
        version=f'W/"{entry.version}{"" if active or entry.kind == "Group" else "-inactive"}"',
    )
    model = User if entry.kind == "User" else Group
    shown = model.model_validate({"schemas": [str(model.__schema__)], **entry.attributes})
    shown.id, shown.meta = entry.id, meta
    if isinstance(shown, User):
        shown.active = active
    elif entry.members:
        shown.members = [
            Member.model_validate({"value": member, "$ref": f"Users/{member}", "type": "User"})
            for member in entry.members
        ]
    return shown


def _search(
    resources: list[Resource[Any]], resource_types: list[ResourceType], request: SearchRequest[Any]
) -> SearchPage:
    memory = InMemoryStorage()
    memory.resources = resources
    return memory.search(resource_types, request)


def _kind_of(resource_type: ResourceType) -> Kind:
    return cast(Kind, resource_type.name)


def _label_of(resource: Resource[Any]) -> str:
    return str((resource.user_name if isinstance(resource, User) else cast(Group, resource).display_name) or "")
