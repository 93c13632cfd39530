"""Decisions that a passkey signs, or that use the code of an app: what is signed, and what stays with the decision."""

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import parse_json
from sayso.core.clock import new_secret
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.proofs import Proof, SignedDecision, digest_content, encode_base64url, make_challenge
from sayso.errors import Conflict
from service.core.auth.codes import Codes
from service.core.store.attempts import Attempts
from service.core.store.people import People
from service.core.store.tenants import Proven, TenantStore
from service.core.wiring import Wiring
from service.edge.web.additions import DecisionForm
from service.features.passkeys.accounts import PasskeyAccounts, use_passkey
from service.features.passkeys.ceremonies import (
    RelyingParty,
    UntrustedPasskey,
    describe_request,
    hash_challenge,
    write_public_key,
)
from service.features.passkeys.store import Challenge, Passkeys


async def begin_deciding(parts: Wiring, person: str, request: DecisionRequest) -> JsonValue:
    """Return the options with which a person's passkey signs a decision, and its nonce; raises `Conflict`."""
    accounts = parts.feature(PasskeyAccounts)
    party, known = accounts.require_party(), await accounts.list_of(person)
    if not known:
        raise Conflict("You have no passkey. Add one on /me/passkeys, and approve this then.")
    nonce = encode_base64url(bytes.fromhex(new_secret()))
    challenge = _find_challenge(request, nonce)
    begun = Challenge(purpose="decide", person=person, host=party.id, origin=party.origin)
    await parts.part(Passkeys).save_challenge(hash_challenge(challenge), begun)
    options = describe_request(party, challenge, known)
    return {**options, "nonce": nonce}


async def complete(form: DecisionForm) -> DecisionRequest:
    """Return the decision of a form with what the passkey signed, if it did; raises `UntrustedPasskey`."""
    signed = form.post.get("signed")
    if not signed or form.item.terms.step_up is None:
        return form.decision
    try:
        return form.decision.model_copy(update={"signed": SignedDecision.model_validate(parse_json(signed))})
    except ValidationError as error:
        raise UntrustedPasskey from error


async def prove_decision(store: TenantStore, item: Item, request: DecisionRequest, by: Actor) -> Proven:
    """Verify what a passkey signed, or use the code of an app; raises `UntrustedPasskey`, `WrongCode`."""
    if request.signed is not None:
        return Proven(await _prove_signed(store, request, request.signed, by))
    if request.code is None or item.terms.step_up != "code":
        return Proven()
    await Codes(People(store), Attempts(store.redis), store.sealer).use(by.id, request.code)
    return Proven(code_used=True)


async def _prove_signed(store: TenantStore, request: DecisionRequest, signed: SignedDecision, by: Actor) -> Proof:
    """Return the proof of a decision that its person's own passkey signed, once; raises `UntrustedPasskey`."""
    passkeys = Passkeys(store)
    challenge = _find_challenge(request, signed.nonce)
    begun = await passkeys.take_challenge(hash_challenge(challenge))
    if begun is None or begun.purpose != "decide" or begun.person != by.id:
        raise UntrustedPasskey(
            "Your passkey signed another decision, or over 5 minutes ago, or this one before. Approve it again."
        )
    known = await passkeys.find(signed.credential_id)
    if known is None or known.person != by.id:
        raise UntrustedPasskey("This is not a passkey of yours. Nothing was changed.")
    passkey = await use_passkey(passkeys, signed, challenge, RelyingParty(begun.host, begun.origin))
    return Proof(
        **signed.model_dump(),
        name=passkey.name,
        public_key=write_public_key(passkey.public_key),
        content=digest_content(request.args, request.value),
    )


def _find_challenge(request: DecisionRequest, nonce: str) -> bytes:
    return make_challenge(request.digest, request.action, digest_content(request.args, request.value), nonce)
