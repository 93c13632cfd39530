"""Roles: what each lets a person do, on every door. The pages, the API and the channels ask this table."""

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

from pydantic import JsonValue

from sayso.core.clock import now_ms
from sayso.core.records.decisions import Limits
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound
from service.core.cache import Cache, Refresher
from service.core.store.directory import Emergency, EmergencyStore, Role, RoleStore

Permission = Literal[
    "account",
    "read_items",
    "decide",
    "grant",
    "read_runs",
    "start_runs",
    "cancel_runs",
    "cancel_any_run",
    "read_history",
    "export",
    "read_desk",
    "read_rules",
    "edit_rules",
    "read_people",
    "read_channels",
    "manage_people",
    "manage_groups",
    "manage_keys",
    "manage_channels",
    "manage_webhooks",
    "read_activity",
    "freeze",
    "erase",
    "drills",
    "set_up",
    "break_glass",
]

PERMISSIONS: Mapping[Permission, str] = {
    "account": "their own password, sessions, keys, channels, absences and saved views; everybody has it",
    "read_items": "the inbox and items, with files and questions",
    "decide": "decide, extend, claim, ask, comment, and second looks",
    "grant": "confirm and revoke permissions that were given ahead",
    "read_runs": "runs, trails and timelines",
    "start_runs": "start runs, and ask for approval",
    "cancel_runs": "cancel and revive runs whose items they may deny",
    "cancel_any_run": "cancel every run",
    "read_history": "decided items",
    "export": "export decided items",
    "read_desk": "groups, who is asked, insights, freezes and diagnostics",
    "read_rules": "rules and their versions, and what they would do",
    "edit_rules": "attest, restore, shadow and replay rules",
    "read_people": "everybody's accounts, keys, sessions and figures",
    "read_channels": "channels, endpoints, senders and failed messages",
    "manage_people": "add people, give roles, make roles, reset passwords",
    "manage_groups": "create, change and delete groups",
    "manage_keys": "create, rotate and revoke everybody's keys",
    "manage_channels": "test cards and previews of channels, and Slack's installation",
    "manage_webhooks": "register, change and delete endpoints and senders, and send again",
    "read_activity": "the activity log",
    "freeze": "freeze and unfreeze",
    "erase": "erase the contents of runs",
    "drills": "plant drills",
    "set_up": "the first steps",
    "break_glass": "take emergency rights for an hour, which others are informed of",
}
"""What each permission lets a person do."""

ALL = frozenset(get_args(Permission))
_READS = frozenset[Permission](("read_items", "read_runs", "read_history", "read_desk", "read_rules"))
_REVIEWS = frozenset[Permission](("decide", "grant", "start_runs", "cancel_runs", "export"))
_OPERATES = frozenset[Permission](("start_runs", "cancel_runs", "cancel_any_run", "freeze", "break_glass"))
_LASTING = frozenset[Permission](("manage_people", "manage_groups", "manage_keys", "grant", "erase"))
EMERGENCY = ALL - _LASTING
"""What emergency rights let a person do: nothing that gives rights beyond their end, and nothing that erases."""

REVIEWER, ADMIN = "reviewer", "admin"
ROLES: Mapping[str, frozenset[Permission]] = {
    REVIEWER: _READS | _REVIEWS,
    "rule_author": _READS | {"edit_rules"},
    "auditor": _READS | {"export", "read_people", "read_channels", "read_activity"},
    "operator": _READS | _OPERATES | {"read_channels", "manage_channels", "manage_webhooks"},
    ADMIN: ALL,
}
"""The built-in roles. A person may have several."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
MOST_ROLES = 100


class Rights(NamedTuple):
    """What a person may do: each permission with the limits of the roles that give it."""

    granted: Mapping[Permission, Limits]

    def has(self, permission: Permission) -> bool:
        return permission == "account" or permission in self.granted

    def find_limits(self, permission: Permission) -> Limits:
        """Return the limits of a permission; the empty ones cover nothing."""
        return self.granted.get(permission, ())

    def within(self, other: "Rights") -> bool:
        """Return whether somebody with the other rights may do all of this."""
        return all(
            permission in other.granted and _are_within(limits, other.granted[permission])
            for permission, limits in self.granted.items()
        )

    def narrow(self, permissions: frozenset[Permission]) -> "Rights":
        """Return these rights without others than these permissions."""
        return Rights({name: limits for name, limits in self.granted.items() if name in permissions})

    def widen(self) -> "Rights":
        """Return these rights with the emergency ones."""
        return Rights({**self.granted, **dict.fromkeys(EMERGENCY, None)})


NO_RIGHTS = Rights({})


def _are_within(limits: Limits, others: Limits) -> bool:
    return others is None or (limits is not None and all(limit in others for limit in limits))


def find_rights(names: Iterable[str], made: Mapping[str, Role]) -> Rights:
    """Return what these roles let a person do; a role that is unknown lets them do nothing."""
    granted: dict[Permission, Limits] = {}
    for name in names:
        role = made.get(name)
        named = frozenset(role.permissions) if role is not None else frozenset[str]()
        for permission in ROLES.get(name, [permission for permission in ALL if permission in named]):
            limit = role.limit if role is not None and permission == "decide" else None
            known = granted.get(permission, ())
            granted[permission] = None if limit is None or known is None else (*known, limit)
    return Rights(granted)


def require_permission(rights: Rights, permission: Permission) -> None:
    """Raise `NotAllowed` for a person whose roles do not have this permission."""
    if not rights.has(permission):
        roles = [name for name, permissions in ROLES.items() if permission in permissions]
        raise NotAllowed(
            f"This needs the role {' or '.join(roles)}; ask an admin for it.", role=roles[0], permission=permission
        )


class Roles:
    """The built-in roles and those that the admins of one tenant made, and emergency rights."""

    def __init__(self, store: RoleStore, emergencies: EmergencyStore, refresher: Refresher) -> None:
        self._store, self._made = store, Cache(store.list_all, refresher)
        self._emergencies = Cache(emergencies.list_all, refresher)
        self.list_all = store.list_all

    async def find_rights(self, names: Iterable[str]) -> Rights:
        """Return what these roles let a person do."""
        names = tuple(names)
        made = () if all(name in ROLES for name in names) else await self._made.find()
        return find_rights(names, {role.name: role for role in made})

    async def list_emergencies(self, *, fresh: bool = False) -> list[Emergency]:
        """Return the emergency rights that last."""
        at_ms = now_ms()
        return [emergency for emergency in await self._emergencies.find(fresh=fresh) if at_ms < emergency.until_ms]

    def list_known_emergencies(self) -> list[Emergency]:
        """Return the emergency rights of the last read that still last."""
        at_ms = now_ms()
        return [emergency for emergency in self._emergencies.last() or () if at_ms < emergency.until_ms]

    async def check(self, names: tuple[str, ...]) -> None:
        """Raise `InvalidInput` unless there is at least one role, and all are known."""
        known = [*ROLES, *(role.name for role in await self._made.find(fresh=True))]
        unknown = [place for place, name in enumerate(names) if name not in known]
        if unknown or not names:
            problem = f"Roles are {', '.join(known)}; give at least one of them."
            faults: list[JsonValue] = [{"path": f"$.roles[{place}]", "message": "is no role"} for place in unknown]
            raise InvalidInput(problem, errors=faults)

    async def save(self, role: Role, by: Rights) -> Role:
        """Create or change a role; raises `InvalidInput`, `Conflict`, `NotAllowed` for more than its maker may do."""
        if not _NAME.fullmatch(role.name) or role.name in ROLES:
            raise InvalidInput("A role's name is 1 to 32 of a-z, 0-9 and '_', not a built-in role. Choose another.")
        unknown = sorted({*role.permissions} - ALL)
        if unknown:
            raise InvalidInput(f"There is no permission {unknown[0]!r}. Use some of {', '.join(PERMISSIONS)}.")
        if role.limit is not None and "decide" not in role.permissions:
            raise InvalidInput(
                "Limits narrow what a role decides, not what it reads, and this one decides nothing. "
                "Leave out tools, agents and groups, or add decide."
            )
        made = {known.name: known for known in await self._store.list_all()}
        if role.name not in made and len(made) >= MOST_ROLES:
            raise Conflict(f"There are {MOST_ROLES} roles already. Delete one first.")
        for wanted in (role, *([made[role.name]] if role.name in made else [])):
            if not find_rights([role.name], {role.name: wanted}).within(by):
                raise NotAllowed(f"The role {role.name} may do more than you. Ask an admin.", role=ADMIN)
        await self._store.save(role)
        return role

    async def delete(self, name: str, held_by: Iterable[str]) -> None:
        """Delete a role; raises `NotFound`, or `Conflict` while people have it."""
        if name not in {role.name for role in await self._store.list_all()}:
            raise NotFound(f"There is no role {name[:64]!r} that an admin made. List the roles to see their names.")
        people = sorted(held_by)
        if people:
            raise Conflict(f"{', '.join(people[:5])} have the role {name}. Give them other roles first.")
        await self._store.delete(name)
