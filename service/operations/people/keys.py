"""Create, rotate and revoke keys, the same for API and pages."""

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.errors import Conflict, NotAllowed, NotFound
from service.auth.credentials import Principal, require_own_password
from service.auth.reviewers import require_role
from service.operations.withdrawals import withdraw_runs
from service.store.people import ApiKey, KeyKind, StoredKey
from service.wiring import Wiring


async def create_key(
    parts: Wiring,
    by: Principal,
    name: str,
    kind: KeyKind,
    context: JsonObject | None = None,
    owner: str | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; return it with its only plain copy. Raises `InvalidInput`, or `Conflict` for a confusable name.

    Raises `NotAllowed` for a reviewer's key in somebody else's name, and for other keys unless an admin makes them.
    """
    if kind == "reviewer":
        _check_own(by, name)
    else:
        require_role(by.roles, "admin")
    known = await parts.reviewers.find(name if kind == "reviewer" else name.casefold())
    if kind == "reviewer" and (known is None or not known.active):
        raise Conflict(f"No active reviewer is named {name}. Add the person first.")
    if kind != "reviewer" and known is not None:
        raise Conflict(f"A person is named {known.name}, and names must not be confused. Choose another name.")
    return await parts.api_keys.create(name, kind=kind, context=context, owner=owner, by=by.name, made=by.made)


async def rotate_key(parts: Wiring, by: Principal, key_id: str, overlap_s: int) -> tuple[ApiKey, str]:
    """Create the successor of a key; raises `NotFound`, `Conflict`, or `NotAllowed` as `create_key` does."""
    key = await find_key(parts, by, key_id)
    if key.kind == "reviewer":
        _check_own(by, key.name)
    return await parts.api_keys.rotate(key_id, overlap_s, by.name, by.made)


async def revoke_key(parts: Wiring, by: Principal, key_id: str) -> ApiKey:
    """Revoke a key everywhere within a second, and cancel its unfinished runs; raises `NotFound`."""
    await find_key(parts, by, key_id)
    revoked = await parts.api_keys.revoke(key_id)
    await withdraw_runs(parts, revoked.name)
    return revoked


async def list_keys(parts: Wiring, by: Principal) -> list[StoredKey]:
    """Return all keys in the store for an admin, and for others the reviewer's keys of their own; the oldest first.

    Raises `NotAllowed` for a key: it manages no keys.
    """
    if by.key_id is not None:
        raise NotAllowed("A key manages no keys. Sign in with your password first.")
    keys = await parts.api_keys.scan()
    return keys if "admin" in by.roles else [stored for stored in keys if _is_own(by, stored.key)]


async def list_own_keys(parts: Wiring, by: Principal) -> list[ApiKey]:
    """Return the valid reviewer's keys of a person."""
    at_ms = now_ms()
    keys = await parts.api_keys.list_all()
    return [key for key in keys if _is_own(by, key) and key.holds(at_ms)]


def _is_own(by: Principal, key: ApiKey) -> bool:
    return (key.name, key.kind) == (by.name, "reviewer")


async def find_key(parts: Wiring, by: Principal, key_id: str) -> ApiKey:
    """Return a key that this person may see; raises `NotFound`."""
    key = next((stored.key for stored in await list_keys(parts, by) if stored.key.id == key_id), None)
    if key is None:
        raise NotFound(f"There is no API key {key_id!r}.")
    return key


def _check_own(by: Principal, name: str) -> None:
    """Raise `NotAllowed` unless this is the person of a reviewer's key, signed in with a password of their own."""
    if by.name != name:
        raise NotAllowed(f"Only {name} can make a key that decides as {name}: signed in, on the page Me.")
    if by.key_id is not None:
        raise NotAllowed("A key makes no keys. Sign in with your password first.")
    require_own_password(by)
