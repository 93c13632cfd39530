"""Create and revoke keys: names stay apart from those of people, and a revoked key's runs are cancelled."""

from sayso.canonical_json import JsonObject
from sayso.errors import Conflict
from service.operations.withdrawals import withdraw_runs
from service.store.people import ApiKey, KeyKind
from service.wiring import Wiring


async def create_key(
    parts: Wiring, name: str, kind: KeyKind, context: JsonObject | None = None, owner: str | None = None, by: str = ""
) -> tuple[ApiKey, str]:
    """Create a key; return it with its only plain copy. Raises `InvalidInput`, or `Conflict` for a confusable name."""
    known = await parts.reviewers.find(name if kind == "reviewer" else name.casefold())
    if kind == "reviewer" and (known is None or not known.active):
        raise Conflict(f"No active reviewer is named {name}. Add the person first.")
    if kind != "reviewer" and known is not None:
        raise Conflict(f"A person is named {known.name}, and names must not be confused. Choose another name.")
    return await parts.api_keys.create(name, kind=kind, context=context, owner=owner, by=by)


async def revoke_key(parts: Wiring, key_id: str) -> ApiKey:
    """Revoke a key everywhere within a second, and cancel its unfinished runs; raises `NotFound`."""
    revoked = await parts.api_keys.revoke(key_id)
    await withdraw_runs(parts, revoked.name)
    return revoked
