"""Who is behind a run: the owner of the requester's key, and the person that a signed token names."""

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import ActorKind
from sayso.core.records.suspensions import Who
from service.auth.credentials import Principal
from service.wiring import Wiring


async def find_who(parts: Wiring, caller: Principal, token: str | None) -> Who | None:
    """Return who is behind a request, as far as it is known.

    Raises `InvalidPersonToken` for a token that does not verify, and what the store raises.
    """
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
