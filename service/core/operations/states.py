"""What an act changes: the state of its target before and after, as the activity log keeps it."""

from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import cast

from pydantic import SecretStr

from sayso.core.canonical_json import canonical_json, parse_json
from sayso.core.clock import iso_utc, now_ms
from service.core.settings import FILES, Settings
from service.core.store.activity import CHANGED, ActivityStore
from service.core.store.rules import VersionStore
from service.core.wiring import Wiring

State = Mapping[str, str | tuple[str, ...]]
ReadState = Callable[[Wiring, str], Awaitable[State]]
"""Returns the state of a target by its name or id; empty where there is none."""


async def _read_person(parts: Wiring, name: str) -> State:
    person = await parts.reviewers.find(name)
    if person is None:
        return {}
    return {"active": _say(person.active), "roles": person.roles, "manager": person.manager or ""}


async def _read_group(parts: Wiring, name: str) -> State:
    group = next((group for group in await parts.groups.list_all() if group.name == name), None)
    if group is None:
        return {}
    hours = group.working_hours.model_dump_json(exclude_none=True) if group.working_hours is not None else ""
    return {"members": group.members, "editors": group.editors, "working_hours": hours}


async def _read_role(parts: Wiring, name: str) -> State:
    role = next((role for role in await parts.roles.list_all() if role.name == name), None)
    if role is None:
        return {}
    limit = role.limit.model_dump_json(exclude_defaults=True) if role.limit is not None else ""
    return {"permissions": role.permissions, "limit": limit}


async def _read_key(parts: Wiring, key_id: str) -> State:
    key = next((key for key in await parts.api_keys.list_all() if key.id == key_id), None)
    if key is None:
        return {}
    return {"valid": _say(key.holds(now_ms())), "ends": iso_utc(key.end_ms) if key.end_ms is not None else ""}


async def _read_preferences(parts: Wiring, name: str) -> State:
    if await parts.reviewers.find(name) is None:
        return {}
    chosen = await parts.duty.find_preferences(name)
    return {field: str(value) for field, value in chosen.model_dump(mode="json", exclude_defaults=True).items()}


async def _read_freezes(parts: Wiring, _target: str) -> State:
    return {"frozen": tuple(freeze.scope for freeze in await parts.freezes.in_force(fresh=True))}


async def _read_rules(parts: Wiring, _target: str) -> State:
    return {"in_force": await parts.part(VersionStore).read_in_force()}


STATES: Mapping[str, ReadState] = {
    **dict.fromkeys(("person_added", "person_activated", "person_deactivated"), _read_person),
    **dict.fromkeys(("manager_set", "roles_set"), _read_person),
    **dict.fromkeys(("group_created", "group_changed", "group_deleted"), _read_group),
    **dict.fromkeys(("role_saved", "role_deleted"), _read_role),
    **dict.fromkeys(("key_rotated", "key_revoked"), _read_key),
    **dict.fromkeys(("frozen", "unfrozen"), _read_freezes),
    **dict.fromkeys(("rules_restored", "rules_promoted"), _read_rules),
    "preferences_saved": _read_preferences,
}
"""How to read the state that an act changes, by the act's name."""


def describe_changes(before: State, after: State) -> str:
    """Return how a state changed: `active: yes → no; members: +carla -ben`."""
    parts = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, ""), after.get(name, "")
        if isinstance(old, tuple) or isinstance(new, tuple):
            olds, news = (value if isinstance(value, tuple) else () for value in (old, new))
            changes = [f"+{value}" for value in news if value not in olds]
            changes += [f"-{value}" for value in olds if value not in news]
            parts += [f"{name}: {' '.join(changes)}"] if changes else []
        elif old != new:
            parts.append(f"{name}: {old or 'none'} → {new or 'none'}")
    return "; ".join(parts)


async def note_settings(parts: Wiring) -> None:
    """Record how the settings differ from those of the last start; of secrets only whether they are set."""
    after = _read_settings(parts.settings)
    known = await parts.part(ActivityStore).swap_settings(canonical_json(after, limited=False).decode())
    before = parse_json(known) if known else None
    if isinstance(before, dict) and (changes := describe_changes(cast(State, before), after)):
        await parts.activity.record("settings_changed", "", door="setup", **{CHANGED: changes})


def _read_settings(settings: Settings) -> dict[str, str]:
    """Return the settings that were given, and for a file the beginning of its SHA-256."""
    stated = {}
    for name in sorted(settings.model_fields_set):
        value = getattr(settings, name)
        if isinstance(value, Path):
            digest = sha256(value.read_bytes()).hexdigest()[:12] if value.is_file() and name in FILES else ""
            stated[name] = f"{value} {digest}".rstrip()
        else:
            stated[name] = str(value) if Settings.model_fields[name].repr and not _is_secret(value) else "set"
    return stated


def _is_secret(value: object) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return any(isinstance(single, SecretStr) for single in values)


def _say(truth: bool) -> str:
    return "yes" if truth else "no"
