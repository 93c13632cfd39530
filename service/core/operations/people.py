"""People: who is behind a run, their keys, how they sign in, and what depends on them when they leave."""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_secret, now_ms
from sayso.core.policy.rules import ASKING
from sayso.core.records.decisions import Actor, ActorKind, DecisionAction, KeyKind, list_filled
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord, Who
from sayso.core.records.terms import GROUP_PREFIX
from sayso.core.transitions.deciding import list_statements
from sayso.core.transitions.decision_checks import entitle, may_decide
from sayso.core.transitions.quorum import find_counted, list_agreeing
from sayso.errors import CodeRequired, Conflict, NotAllowed, NotAuthenticated, NotFound, TooManyRequests
from service.core.auth.api_keys import find_by_prefix
from service.core.auth.credentials import Principal, require_own_password
from service.core.auth.reviewers import NAME_PATTERN, Origin, SignIn, hash_token
from service.core.auth.roles import require_permission
from service.core.operations.runs import withdraw_runs
from service.core.store.people import NO_TERMS, ApiKey, KeyTerms, PasswordGiven, People, Reviewer, StoredKey
from service.core.store.suspensions.reading import split_readable
from service.core.wiring import Wiring


async def find_who(parts: Wiring, caller: Principal, token: str | None) -> Who | None:
    """Return who is behind a request, as far as it is known; raises `InvalidPersonToken`."""
    proof = parts.credentials.person_tokens.verify(token) if token is not None else None
    owner = caller.name if caller.kind is ActorKind.HUMAN else caller.key_owner
    person = await parts.reviewers.find(owner) if owner is not None else None
    owner = person.name if person is not None and person.active else None
    if proof is None and owner is None:
        return None
    who = Who()
    if owner is not None:
        groups, manager = await parts.reviewers.list_groups(owner), await parts.reviewers.find_manager(owner)
        who = who.model_copy(update={"owner": owner, "groups": groups, "owner_manager": manager})
    if proof is not None:
        manager = await parts.reviewers.find_manager(proof.person)
        update = {"person": proof.person, "person_name": proof.name, "issuer": proof.issuer, "person_manager": manager}
        who = who.model_copy(update=update)
    return who


def identify_request(body: JsonObject, who: Who | None) -> JsonObject:
    """Return what makes two requests the same: the body, and the person for whom the agent acts."""
    if who is None or who.person is None:
        return body
    return {"body": body, "person": who.person, "issuer": who.issuer}


async def create_key(
    parts: Wiring,
    by: Principal,
    name: str,
    kind: KeyKind,
    terms: KeyTerms = NO_TERMS,
) -> tuple[ApiKey, str]:
    """Create a key; return it with its only plain copy. Raises `InvalidInput`, `Conflict`, `NotAllowed`."""
    if kind == "reviewer":
        _check_own(by, name)
    else:
        require_permission(by.rights, "manage_keys")
    known = await parts.reviewers.find(name if kind == "reviewer" else name.casefold())
    if kind == "reviewer" and (known is None or not known.active):
        raise Conflict(f"No active reviewer is named {name}. Add the person first.")
    if kind != "reviewer" and known is not None:
        raise Conflict(f"A person is named {known.name}, and names must not be confused. Choose another name.")
    return await parts.api_keys.create(name, kind=kind, terms=terms, by=by.name, made=by.made)


async def rotate_key(parts: Wiring, by: Principal, key_id: str, overlap_s: int) -> tuple[ApiKey, str]:
    """Create the successor of a key; raises `NotFound`, `Conflict`, or `NotAllowed` as `create_key` does."""
    key = await find_key(parts, by, key_id)
    if key.kind == "reviewer":
        _check_own(by, key.name)
    return await parts.api_keys.rotate(key_id, overlap_s, by.name, by.made)


async def revoke_key(parts: Wiring, by: Principal, key_id: str) -> ApiKey:
    """Revoke a key everywhere within a second, and cancel its unfinished runs; raises `NotFound`.

    The prefix of its secret names a key, too, with anything after it.
    """
    leaked = find_by_prefix(await parts.api_keys.list_all(), key_id)
    key_id = leaked.id if leaked is not None else key_id
    await find_key(parts, by, key_id)
    revoked = await parts.api_keys.revoke(key_id)
    await withdraw_runs(parts, revoked.name)
    return revoked


async def list_keys(parts: Wiring, by: Principal) -> list[StoredKey]:
    """Return all keys for who reads people, for others their own, the oldest first; raises `NotAllowed` for a key."""
    if by.key_id is not None:
        raise NotAllowed("A key manages no keys. Sign in with your password first.")
    keys = await parts.api_keys.scan()
    return keys if by.rights.has("read_people") else [stored for stored in keys if _is_own(by, stored.key)]


async def list_own_keys(parts: Wiring, by: Principal) -> list[ApiKey]:
    """Return the valid reviewer's keys of a person."""
    at_ms = now_ms()
    return [key for key in await parts.api_keys.list_all() if _is_own(by, key) and key.holds(at_ms)]


def _is_own(by: Principal, key: ApiKey) -> bool:
    return (key.name, key.kind) == (by.name, "reviewer")


async def find_key(parts: Wiring, by: Principal, key_id: str) -> ApiKey:
    """Return a key that this person may change; raises `NotFound`."""
    key = next((stored.key for stored in await list_keys(parts, by) if stored.key.id == key_id), None)
    if key is None or not (by.rights.has("manage_keys") or _is_own(by, key)):
        raise NotFound(f"There is no API key {key_id!r}.")
    return key


def _check_own(by: Principal, name: str) -> None:
    """Raise `NotAllowed` unless this is the person of a reviewer's key, signed in with a password of their own."""
    if by.name != name:
        raise NotAllowed(f"Only {name} can make a key that decides as {name}: signed in, on the page Me.")
    if by.key_id is not None:
        raise NotAllowed("A key makes no keys. Sign in with your password first.")
    require_own_password(by)


MOST_CHECKED = 1000
SIGNED_IN = "signed_in"
_CODE_WITHIN_MS = 300_000  # how long after the password a page takes the code
_ASSENTS = (DecisionAction.APPROVE, DecisionAction.VALUE)


@dataclass(frozen=True)
class Shortage:
    """An open item for which too few people are left to approve it."""

    suspension_id: str
    item_id: str
    tool: str
    missing: int


async def sign_in(
    parts: Wiring, name: str, password: str, origin: Origin, door: str, code: str = "", begun: str = ""
) -> SignIn | PasswordGiven:
    """Open a session, or return who gave their password where a code is needed and none was given.

    `begun` stands for a name and password that were given before. Raises as `Reviewers.sign_in`. A refusal keeps a
    name, not a password in the wrong field.
    """
    plan, reviewers = parts.providers.load(), parts.reviewers
    try:
        if plan.local_accounts == "off":
            raise NotAuthenticated(f"Passwords are switched off here. Sign in with {plan.titles}.")
        admins_only = plan.local_accounts == "break_glass"
        given = await (_recall(parts, begun, origin) if begun else reviewers.check_password(name, password, origin))
        name = given.name
        try:
            opened = await reviewers.complete(given, code, origin, admins_only=admins_only)
        except CodeRequired:
            return given
    except (NotAuthenticated, TooManyRequests) as error:
        claimed = name if NAME_PATTERN.fullmatch(name) else ""
        await parts.activity.refuse(SIGNED_IN, "", error.message, door=door, address=origin.address, target=claimed)
        raise
    by, client = opened.session.name, origin.client
    marks = {"client": client, "password_by": opened.password_by}
    await parts.activity.record(SIGNED_IN, by, door=door, address=origin.address, **marks)
    return opened


async def keep_password(parts: Wiring, given: PasswordGiven) -> str:
    """Return a secret that stands for a given password, once a code comes with it."""
    secret = new_secret()
    await parts.part(People).save_given(hash_token(secret), given, _CODE_WITHIN_MS)
    return secret


async def _recall(parts: Wiring, begun: str, origin: Origin) -> PasswordGiven:
    given = await parts.part(People).find_given(hash_token(begun))
    if given is None:
        raise NotAuthenticated("The code was not given within 5 minutes. Type your name and password again.")
    await parts.reviewers.count_attempt(given.name, origin.address)
    return given


FRESH_MS = 600_000
"""How long after a sign-in what signs in can be changed, so that an open browser of somebody else changes nothing."""


async def require_fresh(parts: Wiring, by: Principal, token: str, refusal: str) -> None:
    """Raise `NotAllowed` with the `refusal` unless the session of this token was opened a short time ago."""
    sessions, token_hash = await parts.reviewers.list_sessions(by.name), hash_token(token)
    since_ms = now_ms() - FRESH_MS
    own = (session.session for session in sessions if session.token_hash == token_hash)
    if not any(session.created_at_ms >= since_ms for session in own):
        raise NotAllowed(refusal)


async def add_reviewer(parts: Wiring, name: str, password: str, roles: tuple[str, ...], by: Principal) -> Reviewer:
    """Create a reviewer; raises `InvalidInput`, `NotAllowed`, or `Conflict` for a name of a person or an agent."""
    await _check_given(parts, by, roles)
    await refuse_agents_name(parts, name)
    return await parts.reviewers.add(name, password, roles, by.name)


async def set_roles(parts: Wiring, by: Principal, name: str, roles: tuple[str, ...]) -> Reviewer:
    """Give a person these roles alone; raises `NotFound`, `InvalidInput`, `NotAllowed`, `Conflict`."""
    await check_rank(parts, by, name)
    await _check_given(parts, by, roles)
    return await parts.reviewers.set_roles(name, tuple(dict.fromkeys(roles)))


async def delete_role(parts: Wiring, name: str) -> None:
    """Delete a role that nobody has; raises `NotFound`, `Conflict`."""
    held_by = [person.name for person in await parts.reviewers.list_all() if name in person.roles]
    await parts.roles.delete(name, held_by)


async def check_rank(parts: Wiring, by: Principal, name: str) -> None:
    """Raise `NotAllowed` for an act on a person who may do what the actor may not."""
    person = await parts.reviewers.find(name)
    if person is not None and not (await parts.roles.find_rights(person.roles)).within(by.lasting):
        raise NotAllowed(f"{name} may do more than you. Ask an admin.", person=name)


async def _check_given(parts: Wiring, by: Principal, roles: tuple[str, ...]) -> None:
    await parts.roles.check(roles)
    if not (await parts.roles.find_rights(roles)).within(by.lasting):
        raise NotAllowed(f"You cannot give {', '.join(roles)}: that is more than you may do. Ask an admin.")


async def refuse_agents_name(parts: Wiring, name: str) -> None:
    """Raise `Conflict` for the name of an agent."""
    if any(key.name.casefold() == name and key.kind != "reviewer" for key in await parts.api_keys.list_all()):
        raise Conflict(f"An agent is named {name}, and names must not be confused. Choose another name.")


async def deactivate_reviewer(parts: Wiring, name: str, by: str) -> Reviewer:
    """Deactivate a reviewer and void decisions; raises `NotFound`, or `Conflict` for oneself or the last admin."""
    if name == by:
        raise Conflict("You cannot deactivate yourself. Ask another admin, or add one first.")
    deactivated = await parts.reviewers.deactivate(name)
    skip = 0  # every page shows that the decisions are void; each later decision checks it, too
    while ids := await parts.runs.inbox(skip, MOST_CHECKED):
        skip += len(ids)
        records, _ = split_readable(await parts.desk.suspensions.read_page(ids))
        for record in records:
            if any(made.by.id == name for item in record.items if item.open for made in list_statements(item)):
                await parts.desk.void_decisions(record.id, (name,))
    return deactivated


def list_duties(parts: Wiring, name: str, groups: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the rules in force that name a person or one of their groups."""
    names = {name, *(f"{GROUP_PREFIX}{group}" for group in groups)}
    asking = [(rule.rule_id, rule.terms) for rule in parts.rules.policy().live if rule.action in ASKING]
    return tuple(id_ for id_, terms in asking if not names.isdisjoint(terms.named))


async def find_shortages(parts: Wiring, leaving: str) -> list[Shortage]:
    """Return the open items that too few people could approve without this person, the most urgent first."""
    ids = await parts.runs.inbox(limit=MOST_CHECKED)
    records, _ = split_readable(await parts.desk.suspensions.read_page(ids))
    people = [person.name for person in await parts.reviewers.list_all() if person.active]
    actors = [await parts.reviewers.find_actor(name, "web") for name in people]
    staying = [actor for actor in actors if actor.id != leaving]
    shortages: list[Shortage] = []
    for record in records:
        for item in record.items:
            if item.outcome is None and any(
                actor.id == leaving and may_decide(record, item, actor) for actor in actors
            ):
                missing = _count_missing(record, item, staying)
                if missing > 0:
                    shortages.append(Shortage(record.id, item.item_id, item.tool.name, missing))
    return shortages


def _count_missing(record: SuspensionRecord, item: Item, actors: Sequence[Actor]) -> int:
    """Return how many approvals the item lacks if every one of these people approves it."""
    free = [entitle(record, item, actor) for actor in actors if may_decide(record, item, actor)]
    able = [actor for actor in free if actor is not None and find_counted(item, actor) is None]
    assents = [decision for decision in item.current if decision.action in _ASSENTS]
    agreeing = max((list_agreeing(item, decision) for decision in assents), key=len, default=[])
    each_of = item.terms.quorum.each_of
    unfilled = len(each_of) - len(list_filled(each_of, [*agreeing, *able]))
    return max(item.terms.quorum.approve - len(agreeing) - len(able), unfilled)
